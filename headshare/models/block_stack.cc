#include "headshare/models/block_stack.h"

#include "headshare/base/error.h"
#include "headshare/ops/recompute.h"

namespace headshare {

BlockStackImpl::BlockStackImpl(const TransformerOptions& o, std::shared_ptr<DropoutClock> clock,
                               std::optional<AttentionOptions> cross)
    : clock_(std::move(clock)), depth_(static_cast<size_t>(o.layers)) {
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

BlockStackImpl::Placed BlockStackImpl::at_depth(size_t depth) const {
  return {.block = blocks_[depth * blocks_.size() / depth_], .clock = clock_, .path = join_text(path(), ".", depth)};
}

Tensor BlockStackImpl::one(size_t depth, const Tensor& x, const HeadMask& mask, KvCache* cache,
                           const CrossMemory* cross) const {
  if (cross == nullptr) {
    const auto piece = [placed = at_depth(depth), mask, cache](const Tensor& in) {
      return placed.run([&](const Block& block) { return block->forward(in, mask, cache); });
    };
    return recomputes() && cache == nullptr ? recomputed(piece, x) : piece(x);
  }
  KvCache* const kept = cross->caches == nullptr ? nullptr : &cross->caches->at(depth);
  const auto piece = [placed = at_depth(depth), mask, cache, kept, visible = cross->visible_keys](
                         const Tensor& in, const Tensor& memory) {
    const CrossInput input{.memory = memory, .visible_keys = visible, .cache = kept};
    return placed.run([&](const Block& block) { return block->forward(in, mask, cache, &input); });
  };
  return recomputes() && cache == nullptr ? recomputed(piece, x, cross->memory) : piece(x, cross->memory);
}

Tensor BlockStackImpl::some(size_t count, Tensor x, const HeadMask& mask, std::vector<KvCache>* caches,
                            const CrossMemory* cross) const {
  for (size_t i = 0; i < count; ++i) x = one(i, x, mask, caches == nullptr ? nullptr : &caches->at(i), cross);
  return x;
}

Tensor BlockStackImpl::forward(Tensor x, const HeadMask& mask, std::vector<KvCache>* caches,
                               const CrossMemory* cross) const {
  return some(depth_, std::move(x), mask, caches, cross);
}

Tensor BlockStackImpl::forward_at(const Tensor& places, Tensor x, const HeadMask& mask) const {
  const size_t last = depth_ - 1;
  x = some(last, std::move(x), mask, /*caches=*/nullptr, /*cross=*/nullptr);
  const auto piece = [placed = at_depth(last), places, mask](const Tensor& in) {
    return placed.run([&](const Block& block) { return block->forward_at(places, in, mask); });
  };
  return recomputes() ? recomputed(piece, x) : piece(x);
}

}  // namespace headshare
