// A block stack holds blocks one above the other, as every transformer has them between its embeddings and its output.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headshare/models/blocks/block.h"

namespace headshare {

// The cross-attention of every block of a stack reads the same CrossMemory.
struct CrossMemory {
  Tensor memory;                           // [By, S, E], where the stack's batch is a multiple of By
  Tensor visible_keys = {};                // bool [By, S], false for padding; undefined: no padding
  std::vector<KvCache>* caches = nullptr;  // one for each depth, as in CrossInput
};

// A BlockStack declares its blocks as "0", "1", ... Layers that share their parameters are one block, applied at
// several depths. Layers that share their keys and values (TransformerOptions::share_kv_layers) are a group of blocks,
// which fills one cache.
class BlockStackImpl : public Layer {
 public:
  // `clock` is the model's. `cross` are the resolved options of the blocks' cross-attention; without them they have
  // none.
  BlockStackImpl(const TransformerOptions& resolved, std::shared_ptr<DropoutClock> clock,
                 std::optional<AttentionOptions> cross = {});

  // Returns the block of a layer with parameters of its own, 0 .. layers() - 1; where layers share theirs, it runs at
  // depth() / layers() depths.
  const Block& block(size_t layer) const { return blocks_.at(layer); }
  size_t layers() const { return blocks_.size(); }
  size_t depth() const { return depth_; }
  size_t groups() const { return depth_ / group_size_; }

  // With recomputation groups keep only their inputs and run again in the backward pass, so that what the blocks of a
  // group share is computed once for all of them.
  void set_recompute(bool on) { recompute_ = on; }

  // Runs all blocks: [B, T, E] -> [B, T, E]. `caches`, when given, holds one for each of groups(); `cross` is given
  // where the blocks have cross-attention.
  Tensor forward(Tensor x, const HeadMask& mask, std::vector<KvCache>* caches,
                 const CrossMemory* cross = nullptr) const;

  // Gives the result of forward() at some positions only, `places` int64 [N] among the B T: [B, T, E] -> [N, E]. The
  // last block's feed-forward sub-layer, two thirds of its products, is computed for these alone. Throws Error where
  // the blocks have cross-attention.
  Tensor forward_at(const Tensor& places, Tensor x, const HeadMask& mask) const;

 private:
  // A Placed block belongs to one depth and runs with the dropout masks of that depth. It outlives the model, for the
  // backward pass.
  struct Placed {
    Block block;
    std::shared_ptr<DropoutClock> clock;
    std::string path;  // the block's path if every depth had its own
    size_t depth;

    Tensor run(const std::function<Tensor(const Block&)>& piece) const;
  };
  // The blocks of a Group read one memory, which the first of them makes.
  struct Group {
    std::vector<Placed> blocks;
    HeadMask mask;
    KvCache* cache;
    Tensor places;  // where defined, the last block answers there alone: [B, T, E] -> [N, E]

    Tensor run(Tensor x, const CrossMemory* cross) const;
  };
  Placed at_depth(size_t depth) const;
  Group group_at(size_t index, const HeadMask& mask, KvCache* cache, Tensor places = {}) const;
  Tensor through(const Group& group, const Tensor& x, const CrossMemory* cross) const;
  bool recomputes() const { return recompute_ && is_training(); }

  bool recompute_ = false;
  std::shared_ptr<DropoutClock> clock_;
  std::vector<Block> blocks_;
  size_t depth_, group_size_;  // in blocks
};
TORCH_MODULE(BlockStack);

}  // namespace headshare
