// A module whose parameters belong to a Python program.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "headshare/ops/layer.h"

namespace headshare {

// This is what Python needs to know to make a parameter: its name, its sizes, where it starts (a normal distribution
// around a mean, or that constant), and whether weight decay applies and the loss can depend on it.
using ParameterDescription = std::tuple<std::string, std::vector<int64_t>, double /*mean*/, double /*deviation*/,
                                        bool /*decays*/, bool /*learned*/>;

// A Borrowing makes a module around tensors that are given with each call, and keeps it as long as these stay the same
// leaves of one type and place. Gradients reach the tensors, leaves or not.
class Borrowing {
 public:
  // The module lets headshare::Layer declare its parameters; `clock` is the one that it is attached to, and its own.
  struct Made {
    std::shared_ptr<torch::nn::Module> module;
    DropoutClock* clock = nullptr;
  };
  using Make = std::function<Made()>;
  explicit Borrowing(Make make);

  // Lists the parameters in the order in which run() takes them.
  std::vector<ParameterDescription> parameters() const;

  // Calls `use` with the module around `parameters`, in training with masks of this `seed`, else in evaluation. One
  // call at a time; others wait. Throws Error where number or sizes of the parameters are not those of the module, or
  // where they are not all in one place.
  template <class Module, class Use>
  auto run(const std::vector<Tensor>& parameters, std::optional<int64_t> seed, Use use) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Made made = around(parameters);
    made.clock->seed = static_cast<uint64_t>(seed.value_or(0));
    made.module->train(seed.has_value());
    return use(dynamic_cast<Module&>(*made.module));
  }

 private:
  void check(const std::vector<Tensor>& parameters) const;
  Made around(const std::vector<Tensor>& parameters) const;

  Make make_;
  std::vector<Declared> declared_;  // on kMeta
  mutable std::mutex mutex_;
  mutable std::vector<Tensor> held_;
  mutable Made made_;
  mutable at::TensorOptions made_like_;  // of the first parameter, which its buffers follow
};

}  // namespace headshare
