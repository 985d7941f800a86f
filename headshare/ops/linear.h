// Every transformer is made of this layer besides attention and norms.
#pragma once

#include <torch/nn/pimpl.h>

#include "headshare/ops/gelu.h"
#include "headshare/ops/layer.h"

namespace headshare {

// Returns x W^T + b for x [.., in], W [out, in], b [out] or undefined -> [.., out]. In float32 on the CPU it uses
// multiply(), with its own backward pass, and so under autocast where widens_products(), with results in bfloat16; of
// few rows and without a gradient multiply_few_rows(); else at::linear.
Tensor linear_map(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// Returns linear_map(gelu(x, form), weight, bias). In float32 on the CPU gelu(x) is not kept for the gradient: the
// product that needs it computes it again where it packs it.
Tensor linear_of_gelu(const Tensor& x, GeluForm form, const Tensor& weight, const Tensor& bias = {});

// kInert means that the bias is stored and counted but cannot matter, so it is not added (Role::kInert).
enum class Bias { kYes, kNo, kInert };

// Computes y = x W^T + b, W: [out, in], b: [out] (undefined without bias, not added when inert).
class LinearImpl : public Layer {
 public:
  LinearImpl(int64_t in, int64_t out, Bias bias, Init init);
  Tensor forward(const Tensor& x) const;                         // [.., in] -> [.., out]
  Tensor forward_of_gelu(const Tensor& x, GeluForm form) const;  // forward(gelu(x, form))

  Tensor weight;
  Tensor bias;
};
TORCH_MODULE(Linear);

}  // namespace headshare
