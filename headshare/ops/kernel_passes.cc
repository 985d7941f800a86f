#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "headshare/ops/kernel_glue.h"
#include "headshare/ops/second_derivative.h"

namespace headshare::kernel_glue {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// An autograd node keeps these from its forward to its backward pass.
struct CallHolder : torch::CustomClassHolder {
  CallHolder(const KernelPasses& passes, Rule rule) : passes(passes), rule(std::move(rule)) {}
  const KernelPasses& passes;
  Rule rule;
};

class KernelFunction : public torch::autograd::Function<KernelFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& key, const Tensor& value,
                        const std::optional<Tensor>& bias, const std::optional<Tensor>& sinks,
                        c10::intrusive_ptr<CallHolder> call) {
    const KernelInputs in{query, key, value, bias.value_or(Tensor()), sinks.value_or(Tensor())};
    const KernelOutput made = call->passes.forward(in, call->rule);
    const KernelState& state = made.state;
    context->save_for_backward({query, key, value, in.bias, in.sinks, made.out, state.lse, state.m, state.by_head});
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    return made.out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative("attention");
    const variable_list saved = context->get_saved_variables();
    const auto capsule = context->saved_data["call"].toCapsule();
    const auto& call = *static_cast<CallHolder*>(capsule.get());
    const KernelInputs in{saved[0], saved[1], saved[2], saved[3], saved[4]};
    const KernelOutput made{saved[5], {saved[6], saved[7], saved[8]}};
    const bool with_bias = in.bias.defined() && context->needs_input_grad(3);
    const HeadGradients found = call.passes.backward(in, made, gradients[0], with_bias, call.rule);
    return {found.query, found.key, found.value, found.bias, found.sinks, Tensor()};
  }
};

}  // namespace

Tensor run_passes(const KernelPasses& passes, const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  const KernelInputs in = passes.inputs(p);
  const auto where_defined = [](const Tensor& x) { return x.defined() ? std::optional(x) : std::nullopt; };
  const auto call = c10::make_intrusive<CallHolder>(passes, rule_of(p, mask, dropout));
  return KernelFunction::apply(in.query, in.key, in.value, where_defined(in.bias), where_defined(in.sinks), call)
      .to(type_of(p));
}

}  // namespace headshare::kernel_glue
