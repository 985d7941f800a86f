// One fine-tuning run trains a job's model for some epochs and scores its best epoch on every part.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "headshare/ops/precision.h"
#include "headshare/tasks/finetune/job.h"
#include "headshare/train/trainer.h"

namespace headshare {

// FineTuneLearning say how a fine-tuning learns; what it learns from is in JobOptions.
struct FineTuneLearning {
  std::vector<SpelledNumber> learning_rates = {{5e-5, "5e-5"}};  // the peak, of each run; the best by validation counts
  double warmup_ratio = 0.1;                                     // of the steps, before a linear decay to 0
  double weight_decay = 0.01;
  double beta2 = 0.999;
  double max_gradient_norm = 1;
  int64_t accumulation = 1;
  int64_t patience = 0;  // epochs; 0: never stop early
  Precision precision = Precision::kFp32;
};

Fields fields(FineTuneLearning& options);

// Throws Error for no learning rate, one that is not above 0, and one that is there twice.
void check_learning_rates(const FineTuneLearning& options);

// A FineTunedModel is one fine-tuned model: a job, a learning rate and a seed.
struct FineTunedModel {
  double learning_rate = 0;
  int64_t seed = 0;
  int64_t steps = 0;
  double best_epoch = 0;
  double seconds = 0;               // of the training
  std::vector<PartScores> parts{};  // of the model that was best on the validation part

  // Returns what learning rates are compared by: the goal of the validation part; -1, the least a metric can be, where
  // that is 0/0.
  double validation_goal() const;
};

// Returns what a benchmark's average takes of a task: the goal of the validation part; for MNLI the mean over both
// halves of it.
double average_goal(const FineTunedModel& model);

nlohmann::ordered_json to_json(const FineTunedModel& model);

struct FineTuneRun {
  FineTuneJob& job;
  const FineTuneOptions& tuning;
  const FineTuneLearning& options;
  double learning_rate;
  int64_t seed;
  c10::Device device;
  Reducer& processes = one_process();
  bool shard_optimizer = false;
};

// Returns the trainer's options for a run.
TrainOptions train_options(const FineTuneRun& run);

// Trains in `directory`, or goes on with what was begun there; the result of a finished run there is returned as it is.
// When it is done the directory has metrics.jsonl, result.json, the answers to each part and, if `keep_model`, the best
// model. Several processes train it together and get the same result; process 0 writes. Throws Interrupted, after
// saving, when asked to stop, and Diverged.
FineTunedModel fine_tune(const FineTuneRun& run, const fs::path& directory, bool keep_model, Observer* observer,
                         const std::function<bool()>& stop_requested);

}  // namespace headshare
