#include "headshare/ops/layer.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/autograd.h>

#include <unordered_set>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/rng.h"
#include "headshare/ops/declare_with.h"

namespace headshare {
namespace {

c10::Device& declare_device() {
  thread_local c10::Device device(at::kCPU);
  return device;
}

ParameterMaker& parameter_maker() {
  thread_local ParameterMaker maker;
  return maker;
}

}  // namespace

DeclareWith::DeclareWith(ParameterMaker make) : before_(std::exchange(parameter_maker(), std::move(make))) {}
DeclareWith::~DeclareWith() { parameter_maker() = std::move(before_); }

DeclareOn::DeclareOn(c10::Device device) : before_(declare_device()) { declare_device() = device; }
DeclareOn::~DeclareOn() { declare_device() = before_; }

UsedAs::UsedAs(DropoutClock& clock, std::string shared, std::string used_as)
    : clock_(clock),
      shared_before_(std::exchange(clock.shared, std::move(shared))),
      used_as_before_(std::exchange(clock.used_as, std::move(used_as))) {}

UsedAs::~UsedAs() {
  clock_.shared = std::move(shared_before_);
  clock_.used_as = std::move(used_as_before_);
}

Tensor Layer::declare(const std::string& name, at::IntArrayRef sizes, Init init, Decay decay, Role role) {
  const ParameterMaker& maker = parameter_maker();
  // register_parameter() would make a leaf of every tensor.
  const Tensor tensor = maker ? parameters_.insert(name, maker(sizes))
                              : register_parameter(name, at::empty(sizes, at::device(declare_device())));
  declared_.push_back({name, tensor, init, decay, role});
  return tensor;
}

at::Generator keyed_generator(c10::Device device, uint64_t key) {
  if (device.is_cpu()) return at::make_generator<at::CPUGeneratorImpl>(key);
  at::Generator generator = at::globalContext().defaultGenerator(device).clone();
  generator.set_current_seed(key);
  return generator;
}

uint64_t Layer::dropout_key(uint64_t part) const {
  HS_CHECK(clock_ != nullptr, "dropout needs to know its site: call attach() on the model first");
  const bool moved = !clock_->shared.empty() && path_.starts_with(clock_->shared + ".");
  const uint64_t site = stream_key(clock_->seed, moved ? clock_->used_as + path_.substr(clock_->shared.size()) : path_);
  return stream_key(stream_key(site, clock_->tick), part);
}

void attach(torch::nn::Module& root, std::shared_ptr<DropoutClock> clock) {
  for (const auto& item : root.named_modules(/*name_prefix=*/"", /*include_self=*/false)) {
    if (auto* layer = dynamic_cast<Layer*>(item.value().get())) {
      layer->path_ = item.key();
      layer->clock_ = clock;
    }
  }
  if (auto* layer = dynamic_cast<Layer*>(&root)) layer->clock_ = std::move(clock);
}

std::vector<Declared> declared_parameters(const torch::nn::Module& root) {
  std::vector<Declared> all;
  std::unordered_set<const void*> seen;
  const auto visit = [&](const std::string& prefix, const torch::nn::Module& module) {
    const auto* layer = dynamic_cast<const Layer*>(&module);
    if (layer == nullptr) return;
    for (const Declared& one : layer->declared()) {
      if (!seen.insert(one.tensor.unsafeGetTensorImpl()).second) continue;
      all.push_back(one);
      if (!prefix.empty()) all.back().name = prefix + "." + one.name;
    }
  };
  visit("", root);
  for (const auto& item : root.named_modules("", /*include_self=*/false)) visit(item.key(), *item.value());
  return all;
}

void initialise(torch::nn::Module& root, uint64_t seed) {
  const at::NoGradGuard no_grad;
  for (const Declared& one : declared_parameters(root)) {
    if (one.init.deviation == 0) {
      one.tensor.fill_(one.init.mean);
      continue;
    }
    const at::Generator generator = keyed_generator(at::kCPU, stream_key(seed, one.name));
    const Tensor drawn =
        at::empty(one.tensor.sizes(), at::kFloat).normal_(one.init.mean, one.init.deviation, generator);
    one.tensor.copy_(drawn);
  }
}

}  // namespace headshare
