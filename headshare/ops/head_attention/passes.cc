#include "headshare/ops/head_attention/passes.h"

#include <ATen/ATen.h>

#include "headshare/kernels/factorised.h"
#include "headshare/ops/head_attention/backends.h"
#include "headshare/ops/kernel_glue.h"
#include "headshare/ops/plain_gradients.h"

namespace headshare {
namespace {

using kernel_glue::HeadGradients;
using kernel_glue::KernelInputs;
using kernel_glue::KernelOutput;
using Tensors = std::vector<Tensor>;

Tensors learned_tensors(const HeadProblem& p) { return {p.query, p.key, p.value, p.query_shift, p.key_bias, p.sinks}; }

HeadProblem with_tensors(const HeadProblem& p, const Tensors& of) {
  HeadProblem made{.heads = p.heads, .query = of[0], .key = of[1], .value = of[2], .scale = p.scale};
  made.query_shift = of[3];
  made.key_bias = of[4];
  made.sinks = of[5];
  return made;
}

// libtorch's operations take tensors of one type, and headshare's kernels widen what they add to scores.
HeadProblem for_backend(const HeadBackend& backend, const HeadProblem& p) {
  HeadProblem made = p;
  if (backend.device) return made;
  for (Tensor* x : {&made.query_shift, &made.key_bias, &made.sinks}) {
    if (x->defined()) *x = x->to(p.query.scalar_type());
  }
  return made;
}

HeadMask for_backend(const HeadBackend& backend, const HeadProblem& p, const HeadMask& mask) {
  HeadMask made = mask;
  if (!backend.device && mask.alibi_slopes.defined()) made.alibi_slopes = mask.alibi_slopes.to(p.query.scalar_type());
  return made;
}

Tensor run_backend(const HeadBackend& backend, const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  return backend.run(for_backend(backend, p), for_backend(backend, p, mask), dropout);
}

Tensors zeros_for(const Tensors& tensors) {
  Tensors zeros;
  for (const Tensor& x : tensors) zeros.push_back(x.defined() ? at::zeros_like(x) : Tensor());
  return zeros;
}

// The kernel's own pass finds the gradients of what it read, and autograd those of what that was made from.
Tensors kernel_gradients(const HeadProblem& p, const kernel_glue::Rule& rule, const AttendPass& pass,
                         const Tensor& gradient) {
  const auto& passes = *pass.backend->passes;
  const KernelInputs in = passes.inputs(p);
  const at::ScalarType type = in.query.scalar_type();
  const KernelOutput made{pass.out.to(type), {pass.lse, pass.m, pass.by_head}};
  const HeadGradients found = passes.backward(in, made, gradient.to(type), /*with_bias=*/true, rule);
  Tensors slopes = {found.query, found.key, found.value};
  if (found.bias.defined()) slopes.push_back(found.bias);
  if (found.sinks.defined()) slopes.push_back(found.sinks);
  const auto read = [&](const Tensors& tensors) {
    const KernelInputs made_of = passes.inputs(with_tensors(p, tensors));
    Tensors all = {made_of.query, made_of.key, made_of.value};
    if (made_of.bias.defined()) all.push_back(made_of.bias);
    if (made_of.sinks.defined()) all.push_back(made_of.sinks);
    return all;
  };
  return plain_gradients(read, learned_tensors(p), slopes);
}

}  // namespace

int64_t attend_blocks(int64_t queries) { return kernels::FactorisedSizes{.T = queries}.blocks(); }

AttendPass attend_forward(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout, bool gradients) {
  check_problem(p, mask);
  const at::NoGradGuard no_grad;
  if (is_empty(p)) return {at::zeros({p.query.size(0), p.heads, p.query.size(2), p.value.size(3)}, p.query.options())};
  const HeadBackend& backend = choose_head_backend(p, mask, dropout, gradients);
  if (backend.passes == nullptr) return {.out = run_backend(backend, p, mask, dropout), .backend = &backend};
  const KernelOutput made = backend.passes->forward(backend.passes->inputs(p), kernel_glue::rule_of(p, mask, dropout));
  return {made.out.to(kernel_glue::type_of(p)), made.state.lse, made.state.m, made.state.by_head, &backend};
}

ProblemGradients attend_backward(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout,
                                 const AttendPass& pass, const Tensor& gradient) {
  const at::NoGradGuard no_grad;
  Tensors found;
  if (pass.backend == nullptr) {
    found = zeros_for(learned_tensors(p));
  } else if (pass.backend->passes != nullptr) {
    found = kernel_gradients(p, kernel_glue::rule_of(p, mask, dropout), pass, gradient);
  } else {
    const auto again = [&](const Tensors& tensors) -> Tensors {
      return {run_backend(*pass.backend, with_tensors(p, tensors), mask, dropout)};
    };
    found = plain_gradients(again, learned_tensors(p), {gradient.to(pass.out.scalar_type())});
  }
  return {found[0], found[1], found[2], found[3], found[4], found[5]};
}

}  // namespace headshare
