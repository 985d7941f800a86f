// This header holds AdamW (Loshchilov and Hutter, 2019) and LAMB (You et al., 2020) over a model's declared parameters.
#pragma once

#include "headshare/base/options/field.h"
#include "headshare/models/checkpoint.h"
#include "headshare/ops/layer.h"
#include "headshare/train/gradient_buckets.h"
#include "headshare/train/reducer.h"

namespace headshare {

enum class OptimizerKind { kAdamW, kLamb };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // of parameters declared with Decay::kYes: not biases, norms, head embeddings
  // This is no option of the result: each of several processes keeps the moments of some parameters, and steps these
  // (ZeRO-1, Rajbhandari et al., 2020). The steps have the same bits.
  bool shard = false;
};

Fields fields(OptimizerOptions& options);

//   m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, u = (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
//   AdamW:  p = p (1 - lr wd) - lr u, by libtorch's fused kernel
//   LAMB:   p = p - lr r (u + wd p) with r = |p| / |u + wd p| for each tensor that decays, so that a step is a share
//           of the tensor's own length; r = 1 for the others and where a length is 0
// Inert parameters are left alone; so are parameters without a gradient. Several processes have an optimizer each, over
// copies of the model.
class Optimizer {
 public:
  // `reducer` must outlive the optimizer.
  Optimizer(const torch::nn::Module& model, const OptimizerOptions& options, Reducer& reducer = one_process());

  Reducer& reducer() { return reducer_; }

  // Adds up the gradients of the processes; null where there is one process.
  GradientBuckets* buckets() { return buckets_.get(); }

  // Returns the Euclidean norm of all gradients divided by `divisor`, in all processes as process 0 finds it. The next
  // step takes them so, and shortened to the norm `most` (0: as they are): the divisor of a mean and the clipping cost
  // no pass of their own.
  double measure_gradients(double divisor, double most);

  // Moves the parameters. Gradients count as measure_gradients() said, or as they are; they are left scaled.
  void step(double learning_rate);
  void zero_gradients();

  // Returns moments and step counts by parameter name, sharing memory with the optimizer. With shards all processes
  // call it together, and process 0 gets the tensors of all; those of the others are on the CPU.
  NamedTensors state() const;

  // Takes over a state() with the tensors of all processes. Throws Error where a tensor is missing or has another
  // shape; some may be taken over then.
  void load(const NamedTensors& state, const std::string& where);

  // Gives the processes what process 0 has loaded. Only its `state` counts, which is the one that load() took over.
  void share(const NamedTensors& state);

  // Counts the bytes of the moments in this process.
  int64_t moment_bytes() const;

 private:
  struct Slot {
    std::string name;
    Tensor parameter, first_moment, second_moment,
        steps;  // the last three are undefined where another process has them
    double weight_decay;
    int64_t owner;  // the process that steps the parameter, with shards
  };

  bool steps_here(const Slot& slot) const { return slot.first_moment.defined(); }
  bool sharded() const { return options_.shard && reducer_.size() > 1; }
  std::vector<std::pair<std::string, Tensor>> moments(const Slot& slot) const;
  void share_parameters();

  void adamw(double learning_rate, double weight_decay);
  void lamb(double learning_rate);

  OptimizerOptions options_;
  Reducer& reducer_;
  std::vector<Slot> slots_;
  std::unique_ptr<GradientBuckets> buckets_;
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
