// A task is a model with the data it learns from and the way it is judged. The training loop knows nothing else about
// what it trains.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "headshare/metrics/score.h"
#include "headshare/ops/layer.h"

namespace headshare {

enum class Part { kValidation, kTest };

inline std::string part_name(Part part) { return part == Part::kValidation ? "validation" : "test"; }

struct Evaluation {
  double loss = 0;  // mean nats per target
  int64_t targets = 0;
  std::vector<Score> scores = {};  // the task's own metrics
  // These are the numbers that models are compared by, one for each block of the part, for intervals: the mean loss of
  // a window of text, the accuracy of a diagnostic sequence.
  std::vector<double> blocks = {};
  std::vector<int64_t> block_targets = {};  // what each block weighs; empty: all the same
  std::optional<double> goal =
      {};  // what a better model has more of, where that is not a smaller loss: a task's metric
  std::vector<std::string> outputs = {};  // what the model wrote, where it writes text: an item each
  double output_seconds = 0;              // the time that it took

  // Returns the number that early stopping and "best" look at: the smaller the better.
  double criterion() const { return goal ? -*goal : loss; }
};

class Task {
 public:
  using Progress = std::function<void(int64_t done, int64_t total)>;

  virtual ~Task() = default;

  virtual std::shared_ptr<torch::nn::Module> model() = 0;
  virtual DropoutClock& clock() = 0;

  // Draws the micro-batches of the next step and returns how many targets they have together.
  virtual int64_t draw(int64_t micro_batches) = 0;

  // Returns the loss summed over the targets of micro-batch `index` of those drawn last; scalar, with gradient.
  virtual Tensor loss_sum(int64_t index) = 0;

  // Returns the last loss_sum() without what a teacher adds; nothing where no teacher has a say in it.
  virtual std::optional<double> plain_loss_sum() const { return std::nullopt; }

  // Judges the model on a part of the data; throws Error when there is no such part.
  virtual Evaluation evaluate(Part part, const Progress& progress) = 0;
  virtual bool has(Part part) const = 0;

  // Judges the model's teacher on the validation part in the same way; returns nothing where there is no teacher.
  virtual std::optional<Evaluation> evaluate_teacher(const Progress& /*progress*/) { return std::nullopt; }

  // Returns where the data stands: drawing goes on from there.
  virtual nlohmann::json state() const = 0;
  virtual void restore(const nlohmann::json& state, const std::string& where) = 0;

  // Writes the model so that it can be used without the run: weights, configuration, tokenizer.
  virtual void save(const std::string& directory) = 0;

  // Counts the inputs seen per pass over the training data so far, for the progress line.
  virtual double epochs() const = 0;

  // Returns the loss of a model that has learnt how frequent each target is and nothing else, where the task knows it.
  virtual std::optional<double> unigram_entropy() const { return std::nullopt; }

  // Says how to leave the plateau of a loss near that entropy, as an imperative.
  virtual std::string plateau_advice() const { return ""; }
};

}  // namespace headshare
