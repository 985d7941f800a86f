#include "headshare/models/blocks/block_stack.h"

#include "headshare/base/error.h"
#include "headshare/ops/recompute.h"

namespace headshare {

BlockStackImpl::BlockStackImpl(const TransformerOptions& o, std::shared_ptr<DropoutClock> clock,
                               std::optional<AttentionOptions> cross)
    : clock_(std::move(clock)),
      depth_(static_cast<size_t>(o.layers)),
      group_size_(static_cast<size_t>(o.share_kv_layers)) {
  for (int64_t i = 0; i < own_layers(o); ++i) {
    TransformerOptions one = o;
    one.attention = layer_attention(o, i);
    if (o.norms == NormPlacement::kBeforeExceptFirst && i > 0) one.norms = NormPlacement::kBefore;
    blocks_.push_back(register_module(std::to_string(i), Block(one, cross)));
  }
}

Tensor BlockStackImpl::Placed::run(const std::function<Tensor(const Block&)>& piece) const {
  std::optional<UsedAs> masks;
  if (block->is_training() && block->path() != path) masks.emplace(*clock, block->path(), path);
  return piece(block);
}

Tensor BlockStackImpl::Group::run(Tensor x, const CrossMemory* cross) const {
  Memory lent;
  for (const Placed& one : blocks) {
    KvCache* const filled = &one == &blocks.front() ? cache : nullptr;
    x = one.run([&](const Block& block) {
      if (places.defined() && &one == &blocks.back()) return block->forward_at(places, x, mask, &lent);
      if (cross == nullptr) return block->forward(x, mask, filled, /*cross=*/nullptr, &lent);
      const CrossInput input{.memory = cross->memory,
                             .visible_keys = cross->visible_keys,
                             .cache = cross->caches == nullptr ? nullptr : &cross->caches->at(one.depth)};
      return block->forward(x, mask, filled, &input, &lent);
    });
  }
  return x;
}

BlockStackImpl::Placed BlockStackImpl::at_depth(size_t depth) const {
  return {.block = blocks_[depth * blocks_.size() / depth_],
          .clock = clock_,
          .path = join_text(path(), ".", depth),
          .depth = depth};
}

BlockStackImpl::Group BlockStackImpl::group_at(size_t index, const HeadMask& mask, KvCache* cache,
                                               Tensor places) const {
  Group made{.blocks = {}, .mask = mask, .cache = cache, .places = std::move(places)};
  for (size_t i = 0; i < group_size_; ++i) made.blocks.push_back(at_depth(index * group_size_ + i));
  return made;
}

Tensor BlockStackImpl::through(const Group& group, const Tensor& x, const CrossMemory* cross) const {
  if (!recomputes() || group.cache != nullptr) return group.run(x, cross);
  if (cross == nullptr) {
    return recomputed([group](const Tensor& in) { return group.run(in, /*cross=*/nullptr); }, x);
  }
  const auto piece = [group, visible = cross->visible_keys, caches = cross->caches](const Tensor& in,
                                                                                    const Tensor& memory) {
    const CrossMemory read{.memory = memory, .visible_keys = visible, .caches = caches};
    return group.run(in, &read);
  };
  return recomputed(piece, x, cross->memory);
}

Tensor BlockStackImpl::forward(Tensor x, const HeadMask& mask, std::vector<KvCache>* caches,
                               const CrossMemory* cross) const {
  for (size_t i = 0; i < groups(); ++i) {
    x = through(group_at(i, mask, caches == nullptr ? nullptr : &caches->at(i)), x, cross);
  }
  return x;
}

Tensor BlockStackImpl::forward_at(const Tensor& places, Tensor x, const HeadMask& mask) const {
  for (size_t i = 0; i < groups(); ++i) {
    const bool last = i + 1 == groups();
    x = through(group_at(i, mask, /*cache=*/nullptr, last ? places : Tensor()), x, /*cross=*/nullptr);
  }
  return x;
}

}  // namespace headshare
