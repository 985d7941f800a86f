// This header holds an attention sub-layer: a scheme, the core, dropout and a cache.
#pragma once

#include <functional>

#include "headshare/attention/scheme.h"

namespace headshare {

// This is an attention problem as the core gets it.
struct PosedAttention {
  Posed posed;
  HeadMask mask;
  HeadDropout dropout;
};

class AttentionImpl : public Layer {
 public:
  explicit AttentionImpl(const AttentionOptions& options);

  // Attends from x [B, T, E] to itself -> [B, T, E]. With a cache, x is appended to what it holds and attends to all of
  // it; `mask.visible_keys` then covers the whole cache. A layer that lends its memory leaves all of it in `lent`, and
  // a layer that borrows reads it from there, where the last T tokens are those of x, and takes no cache.
  Tensor self(const Tensor& x, const HeadMask& mask, KvCache* cache = nullptr, Memory* lent = nullptr) const;

  // Attends from x [B, T, E] to the memory y [By, S, E], where B is a multiple of By (beams: the memory of a sentence
  // is never copied per beam); `mask.visible_keys` is [By, S]. With a cache y is projected once, on the first call, and
  // not read again.
  Tensor cross(const Tensor& x, const Tensor& y, HeadMask mask, KvCache* cache = nullptr) const;

  // Returns the problem that queries of x [B, T, E], at the last T of S positions, and a memory of y [B, S, E] pose to
  // the core. Nothing is attended: reports on kernels and analysis look at the problem.
  PosedAttention pose(const Tensor& x, const Tensor& y, const HeadMask& mask) const;

  const Scheme& scheme() const { return *scheme_; }
  Scheme& scheme() { return *scheme_; }

  // Shows every self- and cross-attention from now on what it read, x [B, T, E], and gave [B, T, E]; an empty function
  // ends that. This serves analysis, which has no gradients and no cache.
  using Observer = std::function<void(const Tensor& x, const HeadMask& mask, const Tensor& output)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

 private:
  Tensor attend_to_itself(const Tensor& x, HeadMask mask, KvCache* cache, Memory* lent) const;
  // Adds the layer's window and its ALiBi slopes.
  HeadMask own_mask(HeadMask mask, const Tensor& x) const;
  // Poses what queries of x, which the scheme projected, ask of a memory.
  PosedAttention ask(const Tensor& x, const Tensor& queries, Memory memory, HeadMask mask) const;
  Tensor attend_and_merge(const PosedAttention& asked) const;

  std::shared_ptr<Scheme> scheme_;
  Tensor alibi_slopes_;  // [H] or undefined
  Observer observer_;
};
TORCH_MODULE(Attention);

// Returns the slopes of ALiBi (Press et al., 2022): 2^(-8 h / H) for h = 1 .. H where H is a power of two, else the
// slopes of the next lower power followed by every other one of the next higher.
std::vector<double> alibi_slopes(int64_t heads);

}  // namespace headshare
