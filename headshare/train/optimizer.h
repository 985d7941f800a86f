// This header holds AdamW (Loshchilov and Hutter, 2019) and LAMB (You et al., 2020) over a model's declared parameters.
#pragma once

#include "headshare/base/field.h"
#include "headshare/models/checkpoint.h"
#include "headshare/ops/layer.h"
#include "headshare/train/reducer.h"

namespace headshare {

enum class OptimizerKind { kAdamW, kLamb };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // of parameters declared with Decay::kYes: not biases, norms, head embeddings
};

Fields fields(OptimizerOptions& options);

//   m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, u = (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
//   AdamW:  p = p (1 - lr wd) - lr u, by libtorch's fused kernel
//   LAMB:   p = p - lr r (u + wd p) with r = |p| / |u + wd p| for each tensor that decays, so that a step is a share
//           of the tensor's own length; r = 1 for the others and where a length is 0
// Inert parameters are left alone; so are parameters without a gradient.
class Optimizer {
 public:
  Optimizer(const torch::nn::Module& model, const OptimizerOptions& options);

  // Adds the gradients of all processes. A parameter that no process has a gradient of keeps none.
  void sum_gradients(Reducer& reducer);

  // Returns the Euclidean norm of all gradients divided by `divisor`. The next step takes them so, and shortened to the
  // norm `most` (0: as they are): the divisor of a mean and the clipping cost no pass of their own.
  double measure_gradients(double divisor, double most);

  // Moves the parameters. Gradients count as measure_gradients() said, or as they are; they are left scaled.
  void step(double learning_rate);
  void zero_gradients();

  // Returns moments and step counts by parameter name, sharing memory with the optimizer.
  NamedTensors state() const;
  void load(const NamedTensors& state, const std::string& where);

 private:
  struct Slot {
    std::string name;
    Tensor parameter, first_moment, second_moment, steps;
    double weight_decay;
  };

  void adamw(double learning_rate, double weight_decay);
  void lamb(double learning_rate);

  OptimizerOptions options_;
  std::vector<Slot> slots_;
  double divisor_ = 1;  // of gradients, in the next step
};

// This is a moving average of the parameters: average = decay * average + (1 - decay) * parameter.
class MovingAverage {
 public:
  MovingAverage(const torch::nn::Module& model, double decay);

  void update();

  // Puts the averages into the model and what was there into the average: calling it twice restores.
  void swap();

  NamedTensors state() const;
  void load(const NamedTensors& state, const std::string& where);

 private:
  double decay_;
  std::vector<std::string> names_;
  std::vector<Tensor> parameters_, averages_;
};

}  // namespace headshare
