// AdamW (Loshchilov and Hutter, 2019) over a model's declared parameters.
#pragma once

#include "headshare/base/field.h"
#include "headshare/models/checkpoint.h"
#include "headshare/ops/layer.h"

namespace headshare {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // of parameters declared with Decay::kYes: not biases, norms, head embeddings
};

Fields fields(AdamWOptions& options);

//   m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2
//   p = p (1 - lr wd) - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
// by libtorch's fused kernel. Inert parameters are left alone; so are parameters without a gradient.
class AdamW {
 public:
  AdamW(const torch::nn::Module& model, const AdamWOptions& options);

  void step(double learning_rate);
  void zero_gradients();

  // The Euclidean norm of all gradients; they are scaled so that it is at most `most` (0: unscaled).
  double clip_gradients(double most);

  // Moments and step counts by parameter name, sharing memory with the optimizer.
  NamedTensors state() const;
  void load(const NamedTensors& state, const std::string& where);

 private:
  struct Slot {
    std::string name;
    Tensor parameter, first_moment, second_moment, steps;
    double weight_decay;
  };

  void update(double learning_rate, double weight_decay);

  AdamWOptions options_;
  std::vector<Slot> slots_;
};

// A moving average of the parameters: average = decay * average + (1 - decay) * parameter.
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
