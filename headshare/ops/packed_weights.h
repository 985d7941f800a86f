// Packs weights of linear layers once for many products: decoding multiplies few rows by all weights at each step, and
// packing them again takes a tenth of that.
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>

namespace headshare {

using at::Tensor;

// Keeps a packed copy of each weight that it is asked for, for products as ComputeIn says then. Until this ends neither
// the weights nor ComputeIn may change.
class PackedWeights {
 public:
  // Returns the weight [out, in], float32 on the CPU, as pack_panels(weight^T) has it.
  const Tensor& panels(const Tensor& weight);

 private:
  std::unordered_map<const void*, Tensor> panels_;  // by where a weight begins
};

// While one of these lives, linear_map() on this thread uses `weights` where it has no gradient to think of.
class UsePackedWeights {
 public:
  explicit UsePackedWeights(PackedWeights* weights);
  ~UsePackedWeights();
  UsePackedWeights(const UsePackedWeights&) = delete;
  UsePackedWeights& operator=(const UsePackedWeights&) = delete;

 private:
  PackedWeights* before_;
};

// Returns the packed weights in use on this thread, or null.
PackedWeights* packed_weights_in_use();

}  // namespace headshare
