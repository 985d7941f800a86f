#include "headshare/train/optimizer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "headshare/base/error.h"

namespace headshare {
namespace {

// libtorch refuses factors that float32 cannot hold. The largest one diverges just as well, and the loop says so.
double in_float(double factor) { return std::min<double>(factor, std::numeric_limits<float>::max()); }

void copy_named(const NamedTensors& from, const std::string& name, const Tensor& to, const std::string& where) {
  const auto found = from.find(name);
  HS_CHECK(found != from.end(), where, ": '", name, "' is missing");
  HS_CHECK(found->second.sizes() == to.sizes(), where, ": '", name, "' has shape ", found->second.sizes(), ", not ",
           to.sizes());
  to.copy_(found->second);
}

}  // namespace

Fields fields(OptimizerOptions& o) {
  static const EnumNames<OptimizerKind> kinds = {{OptimizerKind::kAdamW, "adamw"}, {OptimizerKind::kLamb, "lamb"}};
  return {
      field("optimizer", &o.kind, "how gradients become steps; lamb scales each matrix's step to its length", kinds,
            {.aliases = {"optim"}}),
      field("beta1", &o.beta1, "decay of the running mean of gradients",
            {.min = 0, .max = 0.99999, .aliases = {"adam-beta1"}}),
      field("beta2", &o.beta2, "decay of the running mean of squared gradients",
            {.min = 0, .max = 0.99999, .aliases = {"adam-beta2"}}),
      field("adam-epsilon", &o.epsilon, "added to the root of the squared gradient", {.min = 1e-30}),
      field("weight-decay", &o.weight_decay, "pull towards zero on matrices, not on biases, norms, head embeddings",
            {.min = 0}),
  };
}

Optimizer::Optimizer(const torch::nn::Module& model, const OptimizerOptions& options) : options_(options) {
  for (const Declared& one : declared_parameters(model)) {
    if (one.role == Role::kInert) continue;
    slots_.push_back({.name = one.name,
                      .parameter = one.tensor,
                      .first_moment = at::zeros_like(one.tensor),
                      .second_moment = at::zeros_like(one.tensor),
                      .steps = at::zeros({}, one.tensor.options().dtype(at::kFloat)),
                      .weight_decay = one.decay == Decay::kYes ? options.weight_decay : 0});
  }
}

void Optimizer::adamw(double learning_rate, double weight_decay) {
  std::vector<Tensor> parameters, gradients, first, second, steps;
  for (const Slot& slot : slots_) {
    if (slot.weight_decay != weight_decay || !slot.parameter.grad().defined()) continue;
    parameters.push_back(slot.parameter);
    gradients.push_back(slot.parameter.grad());
    first.push_back(slot.first_moment);
    second.push_back(slot.second_moment);
    steps.push_back(slot.steps);
  }
  if (parameters.empty()) return;
  at::_foreach_add_(steps, 1);
  std::optional<Tensor> divisor;
  if (divisor_ != 1) divisor = at::full({}, divisor_, parameters.front().options().dtype(at::kFloat));
  at::_fused_adamw_(parameters, gradients, first, second, /*max_exp_avg_sqs=*/{}, steps, learning_rate, options_.beta1,
                    options_.beta2, weight_decay, options_.epsilon, /*amsgrad=*/false, /*maximize=*/false, divisor);
}

void Optimizer::step(double learning_rate) {
  const at::NoGradGuard no_grad;
  if (options_.kind == OptimizerKind::kLamb) {
    lamb(learning_rate);
  } else {
    adamw(learning_rate, options_.weight_decay);
    if (options_.weight_decay != 0) adamw(learning_rate, 0);
  }
  divisor_ = 1;
}

void Optimizer::lamb(double learning_rate) {
  for (const Slot& slot : slots_) {
    Tensor gradient = slot.parameter.grad();
    if (!gradient.defined()) continue;
    if (divisor_ != 1) gradient.div_(divisor_);
    Tensor first = slot.first_moment;
    Tensor second = slot.second_moment;
    Tensor steps = slot.steps;
    const auto t = steps.add_(1).item<double>();
    first.lerp_(gradient, 1 - options_.beta1);
    second.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
    Tensor update = (second / (1 - std::pow(options_.beta2, t))).sqrt_().add_(in_float(options_.epsilon));
    update =
        at::div(first, update).div_(1 - std::pow(options_.beta1, t)).add_(slot.parameter, in_float(slot.weight_decay));
    double ratio = 1;
    if (slot.weight_decay != 0) {
      const auto length = slot.parameter.norm().item<double>();
      const auto step = update.norm().item<double>();
      if (length > 0 && step > 0) ratio = length / step;
    }
    Tensor parameter = slot.parameter;
    parameter.sub_(update, in_float(learning_rate * ratio));
  }
}

void Optimizer::zero_gradients() {
  for (const Slot& slot : slots_) slot.parameter.mutable_grad().reset();
}

void Optimizer::sum_gradients(Reducer& reducer) {
  if (reducer.size() == 1) return;
  const at::NoGradGuard no_grad;
  std::vector<double> processes;  // that have a gradient of a parameter
  for (const Slot& slot : slots_) processes.push_back(slot.parameter.grad().defined() ? 1 : 0);
  reducer.sum(processes);
  std::vector<Tensor> gradients;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (processes[i] == 0) continue;  // zeros are no gradient: they would let its moments and the parameter decay
    Tensor& gradient = slots_[i].parameter.mutable_grad();
    if (!gradient.defined()) gradient = at::zeros_like(slots_[i].parameter);
    gradients.push_back(gradient);
  }
  reducer.sum(gradients);
}

double Optimizer::measure_gradients(double divisor, double most) {
  const at::NoGradGuard no_grad;
  std::vector<Tensor> gradients;
  for (const Slot& slot : slots_) {
    if (slot.parameter.grad().defined()) gradients.push_back(slot.parameter.grad());
  }
  divisor_ = divisor;
  if (gradients.empty()) return 0;
  const auto norm = at::stack(at::_foreach_norm(gradients, 2)).norm().item<double>() / divisor;
  if (most > 0 && norm > most) divisor_ = in_float(divisor_ * (norm + 1e-6) / most);
  return norm;
}

NamedTensors Optimizer::state() const {
  NamedTensors state;
  for (const Slot& slot : slots_) {
    state[slot.name + "#first_moment"] = slot.first_moment;
    state[slot.name + "#second_moment"] = slot.second_moment;
    state[slot.name + "#steps"] = slot.steps;
  }
  return state;
}

void Optimizer::load(const NamedTensors& state, const std::string& where) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : this->state()) copy_named(state, name, tensor, where);
}

MovingAverage::MovingAverage(const torch::nn::Module& model, double decay) : decay_(decay) {
  for (const Declared& one : declared_parameters(model)) {
    names_.push_back(one.name);
    parameters_.push_back(one.tensor);
    averages_.push_back(one.tensor.detach().clone());
  }
}

void MovingAverage::update() {
  const at::NoGradGuard no_grad;
  at::_foreach_lerp_(averages_, parameters_, 1 - decay_);
}

void MovingAverage::swap() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor before = parameters_[i].detach().clone();
    parameters_[i].copy_(averages_[i]);
    averages_[i].copy_(before);
  }
}

NamedTensors MovingAverage::state() const {
  NamedTensors state;
  for (size_t i = 0; i < names_.size(); ++i) state[names_[i] + "#average"] = averages_[i];
  return state;
}

void MovingAverage::load(const NamedTensors& state, const std::string& where) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : this->state()) copy_named(state, name, tensor, where);
}

}  // namespace headshare
