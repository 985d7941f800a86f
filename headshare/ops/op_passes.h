// Operations as pairs of passes without autograd: what the torch::autograd::Functions of this folder call, and callers
// that have an autograd of their own (headshare/torch_library). Attention's are in head_attention/passes.h.
//
// A forward pass takes any layout, device and floating-point type. Where headshare has no pass of its own, libtorch's
// operations compute the same.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "headshare/ops/cross_entropy.h"
#include "headshare/ops/gelu.h"
#include "headshare/ops/product.h"

namespace headshare {

// Returns gelu(x).
Tensor gelu_forward(const Tensor& x, GeluForm form);
// Returns dy gelu'(x), of x's type.
Tensor gelu_backward(const Tensor& x, const Tensor& dy, GeluForm form);

struct RmsNormPass {
  Tensor y;        // of x's shape and type
  Tensor inverse;  // 1 / sqrt(mean(x^2) + eps) of each row: [rows], float32, or float64 for such x
};
struct RmsNormGradients {
  Tensor x, weight;
};
// Normalises rows of weight [width], as RmsNorm does.
RmsNormPass rms_norm_forward(const Tensor& x, const Tensor& weight, double eps);
RmsNormGradients rms_norm_backward(const Tensor& x, const Tensor& weight, const RmsNormPass& pass, const Tensor& dy,
                                   double eps);

// Returns x with elements dropped with probability p in [0, 1) and the rest scaled by 1 / (1 - p). The mask follows
// from p, the key and the number of values alone, so that the backward pass is the same function of the gradient.
Tensor dropout_pass(const Tensor& x, double p, uint64_t key);

// LinearCall says how a linear map is computed, besides its tensors.
struct LinearCall {
  std::optional<GeluForm> form = {};  // of gelu(x) instead of x
  at::ScalarType type = at::kFloat;   // of y
  FloatProducts products = FloatProducts::kFp32;
};
struct LinearWants {
  bool x = true, weight = true, bias = true;
};
struct LinearGradients {
  Tensor x, weight, bias;  // undefined where not wanted
};
// Tells whether the next two functions take these tensors: see linear_map().
bool takes_linear(const Tensor& x, const Tensor& weight);
// Returns x W^T + b, with b undefined or empty for none.
Tensor linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearCall& call);
LinearGradients linear_backward(const Tensor& x, const Tensor& weight, const Tensor& dy, const LinearCall& call,
                                const LinearWants& wants);

struct LossWants {
  bool hidden = false, embedding = false, bias = false;

  bool any() const { return hidden || embedding || bias; }
};
struct LossPass {
  Tensor sum;                      // a scalar, as cross_entropy_sum()
  Tensor plain;                    // DistilledLoss::plain, where there is a teacher
  Tensor hidden, embedding, bias;  // gradients of the sum, of their tensors' types; undefined where not wanted
};
// Computes cross_entropy_sum() and its gradients at once. `products` is what matrix products take; nothing: autocast
// says so.
LossPass cross_entropy_pass(const Tensor& hidden, const Tensor& embedding, const Tensor& targets, int64_t ignored,
                            const Tensor& bias, const LossWants& wants, std::optional<at::ScalarType> products = {});

}  // namespace headshare
