// Backends over headshare/kernels share this glue: tensors as the kernels see them, the two passes of a kernel and
// their autograd function, and the objections that all of them have.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "headshare/kernels/attention.h"
#include "headshare/ops/head_attention/head_attention.h"

namespace headshare::kernel_glue {

// A kernel reads these besides its rule, in its type and layout.
struct KernelInputs {
  Tensor query, key, value;
  Tensor bias = {};   // total_key_bias() or undefined
  Tensor sinks = {};  // float_sinks() or undefined
};

// The kernels read a rule besides tensors that may need gradients.
struct Rule {
  double scale = 1;
  bool causal = false;
  Tensor visible_keys = {};  // bool [B, S] or undefined
  Tensor alibi_slopes = {};  // float [H] or undefined
  kernels::DropoutMask dropout;
  int64_t heads = 1;
  bool narrow_products = false;  // operands in bf16; else bf16 tensors are widened

  kernels::AttentionRule with(const KernelInputs& inputs) const;
};

Rule rule_of(const HeadProblem& problem, const HeadMask& mask, const HeadDropout& dropout);

// A forward pass leaves these for the backward pass. `m` and `by_head` are those of kernels/factorised.h, which the
// factorised kernel alone has.
struct KernelState {
  Tensor lse, m = {}, by_head = {};
};

struct KernelOutput {
  Tensor out;  // [B, H, T, Dv]
  KernelState state;
};

// Returns libtorch's threads and memory, and the product of small matrices that this processor has.
kernels::Machine machine();

template <typename T>
kernels::HeadsView<T> view(const Tensor& x) {
  using Element = std::remove_const_t<T>;
  return {static_cast<Element*>(x.data_ptr()), x.stride(0), x.stride(1), x.stride(2)};
}

template <typename T>
kernels::AttentionInputs<T> inputs(const Tensor& query, const Tensor& key, const Tensor& value) {
  return {view<const T>(query), view<const T>(key), view<const T>(value)};
}

kernels::AttentionSizes sizes_of(const Tensor& query, const Tensor& key, const Tensor& value, int64_t heads);

// Returns x itself where the rows of its heads lie together and apart from each other, as the kernels want them; else a
// copy.
Tensor with_rows(const Tensor& x);

// Returns [B, heads, rows, width] that lies as [B, rows, heads, width]: what joining the heads needs.
Tensor empty_heads(int64_t B, int64_t heads, int64_t rows, int64_t width, at::TensorOptions options);

// Calls body(float()) or body(kernels::Bf16()) by the tensor's type.
template <typename Body>
void by_type(const Tensor& x, const Body& body) {
  if (x.scalar_type() == at::kFloat) {
    body(float());
  } else {
    body(kernels::Bf16());
  }
}

// A backward pass fills these gradients: of query, key, value, where it is wanted of the bias, and where there are any
// of the sinks.
struct HeadGradients {
  Tensor query, key, value, bias, sinks;

  HeadGradients(const KernelInputs& inputs, bool with_bias);

  template <typename T>
  kernels::AttentionGradients<T> views() const {
    return {view<T>(query), view<T>(key), view<T>(value), bias.defined() ? bias.data_ptr<float>() : nullptr};
  }
};

// These are a kernel's two passes. Neither has to do with autograd; inputs() has, and its casts and sums are
// differentiated as any others.
struct KernelPasses {
  KernelInputs (*inputs)(const HeadProblem&);
  KernelOutput (*forward)(const KernelInputs&, const Rule&);
  // `made` is what forward() returned, and the gradient of made.out is of its type.
  HeadGradients (*backward)(const KernelInputs&, const KernelOutput& made, const Tensor& gradient, bool with_bias,
                            const Rule&);
};

// Runs both passes as one autograd function; the result is of type_of(problem).
Tensor run_passes(const KernelPasses& passes, const HeadProblem& problem, const HeadMask& mask,
                  const HeadDropout& dropout);

// Returns the type that the kernels take a problem in. Under autocast projections are bf16, and what a scheme makes of
// them with its own parameters may be float again: all become bf16 then.
at::ScalarType type_of(const HeadProblem& problem);

// The objection of kernels to a mask with a window.
inline constexpr const char* kNoWindows = "the kernel has no local windows";

// Returns key_bias_h[j] + query_shift_h . k_j: float [B, H, S], undefined when neither is there. Autograd takes the
// gradient of the shift from here.
Tensor total_key_bias(const HeadProblem& problem);

// Returns the sinks as float [H], undefined when there are none.
Tensor float_sinks(const HeadProblem& problem);

// Returns what a kernel reads of a problem whose tensors it takes as `type`.
KernelInputs inputs_as(const HeadProblem& problem, at::ScalarType type);

// Tells whether the kernels over blocks multiply a problem's tensors as bfloat16; they widen those of other problems to
// float32 first.
bool multiplies_bf16(const HeadProblem& problem);
Precision block_products(const HeadProblem& problem);

// They return the objections of every kernel, and of those that multiply small matrices, in bfloat16 or float32.
std::vector<std::string> why_not_kernels(const HeadProblem& problem, const HeadDropout& dropout);
std::vector<std::string> why_not_blocks(const HeadProblem& problem, const HeadDropout& dropout, bool bf16);

}  // namespace headshare::kernel_glue
