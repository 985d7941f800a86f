#include "headshare/train/optimizer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "headshare/base/error.h"
#include "headshare/train/processes.h"

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

// Returns a tensor for the moment of that name: a count of steps is one number.
Tensor empty_moment(const Tensor& parameter, const std::string& name) {
  if (name.ends_with("#steps")) return at::zeros({}, parameter.options().dtype(at::kFloat).requires_grad(false));
  return at::empty_like(parameter.detach(), at::MemoryFormat::Contiguous);
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

Optimizer::Optimizer(const torch::nn::Module& model, const OptimizerOptions& options, Reducer& reducer)
    : options_(options), reducer_(reducer) {
  std::vector<Tensor> parameters;
  std::vector<int64_t> sizes;
  for (const Declared& one : declared_parameters(model)) {
    if (one.role == Role::kInert) continue;
    slots_.push_back({.name = one.name,
                      .parameter = one.tensor,
                      .first_moment = {},
                      .second_moment = {},
                      .steps = {},
                      .weight_decay = one.decay == Decay::kYes ? options.weight_decay : 0,
                      .owner = 0});
    parameters.push_back(one.tensor);
    sizes.push_back(one.tensor.numel());
  }
  const std::vector<int64_t> owners = deal_by_size(sizes, reducer.size());
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    slot.owner = owners[i];
    if (sharded() && slot.owner != reducer.rank()) continue;
    slot.first_moment = at::zeros_like(slot.parameter);
    slot.second_moment = at::zeros_like(slot.parameter);
    slot.steps = at::zeros({}, slot.parameter.options().dtype(at::kFloat));
  }
  if (reducer.size() > 1) buckets_ = std::make_unique<GradientBuckets>(std::move(parameters), reducer);
}

void Optimizer::adamw(double learning_rate, double weight_decay) {
  std::vector<Tensor> parameters, gradients, first, second, steps;
  for (const Slot& slot : slots_) {
    if (!steps_here(slot) || slot.weight_decay != weight_decay || !slot.parameter.grad().defined()) continue;
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
  if (sharded()) share_parameters();
  divisor_ = 1;
}

// Gives all processes the parameters that each has stepped.
void Optimizer::share_parameters() {
  for (int64_t owner = 0; owner < reducer_.size(); ++owner) {
    std::vector<Tensor> stepped, rows;
    int64_t numbers = 0;
    for (const Slot& slot : slots_) {
      if (slot.owner != owner) continue;
      stepped.push_back(slot.parameter);
      rows.push_back(slot.parameter.detach().reshape(-1));
      numbers += slot.parameter.numel();
    }
    if (stepped.empty()) continue;
    const bool own = owner == reducer_.rank();
    const Tensor row = own ? at::cat(rows) : at::empty({numbers}, rows.front().options());
    reducer_.broadcast(row, owner);
    if (own) continue;
    int64_t begin = 0;
    for (Tensor& one : stepped) {
      one.copy_(row.narrow(0, begin, one.numel()).view(one.sizes()));
      begin += one.numel();
    }
  }
}

void Optimizer::lamb(double learning_rate) {
  for (const Slot& slot : slots_) {
    Tensor gradient = slot.parameter.grad();
    if (!steps_here(slot) || !gradient.defined()) continue;
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

double Optimizer::measure_gradients(double divisor, double most) {
  const at::NoGradGuard no_grad;
  std::vector<Tensor> gradients;
  for (const Slot& slot : slots_) {
    if (slot.parameter.grad().defined()) gradients.push_back(slot.parameter.grad());
  }
  divisor_ = divisor;
  if (gradients.empty()) return 0;
  const auto here = at::stack(at::_foreach_norm(gradients, 2)).norm().item<double>() / divisor;
  // Machines add up in different orders. All take the norm of process 0, so that the copies of the weights stay equal.
  const double norm = number_of(reducer_, here);
  if (most > 0 && norm > most) divisor_ = in_float(divisor_ * (norm + 1e-6) / most);
  return norm;
}

// Lists the slot's tensors in this process by their names in a state; they are undefined where another one has them.
std::vector<std::pair<std::string, Tensor>> Optimizer::moments(const Slot& slot) const {
  return {{slot.name + "#first_moment", slot.first_moment},
          {slot.name + "#second_moment", slot.second_moment},
          {slot.name + "#steps", slot.steps}};
}

NamedTensors Optimizer::state() const {
  NamedTensors state;
  for (const Slot& slot : slots_) {
    for (auto& [name, tensor] : moments(slot)) {
      if (!sharded() || slot.owner == 0) {
        if (tensor.defined()) state[name] = tensor;
        continue;
      }
      if (!tensor.defined()) tensor = empty_moment(slot.parameter, name);
      reducer_.broadcast(tensor, slot.owner);
      if (leads(reducer_)) state[name] = tensor.cpu();  // the device may have no room for the moments of all
    }
  }
  return state;
}

void Optimizer::load(const NamedTensors& state, const std::string& where) {
  const at::NoGradGuard no_grad;
  for (const Slot& slot : slots_) {
    for (const auto& [name, tensor] : moments(slot)) {
      copy_named(state, name, tensor.defined() ? tensor : empty_moment(slot.parameter, name), where);
    }
  }
}

void Optimizer::share(const NamedTensors& state) {
  if (reducer_.size() == 1) return;
  const at::NoGradGuard no_grad;
  for (const Slot& slot : slots_) {
    for (const auto& [name, tensor] : moments(slot)) {
      const Tensor sent = empty_moment(slot.parameter, name);
      if (leads(reducer_)) sent.copy_(state.at(name));
      reducer_.broadcast(sent, 0);
      if (tensor.defined()) tensor.copy_(sent);
    }
  }
}

int64_t Optimizer::moment_bytes() const {
  int64_t bytes = 0;
  for (const Slot& slot : slots_) {
    for (const auto& [name, tensor] : moments(slot))
      bytes += tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
  }
  return bytes;
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
