// The training loop draws, sums gradients, steps, evaluates, saves, and can go on exactly where it was.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/ops/precision.h"
#include "headshare/train/gap.h"
#include "headshare/train/observer.h"
#include "headshare/train/optimizer.h"
#include "headshare/train/processes.h"
#include "headshare/train/run_directory.h"
#include "headshare/train/schedule.h"
#include "headshare/train/step.h"
#include "headshare/train/training_state.h"

namespace headshare {

struct TrainOptions {
  int64_t steps = 1000;
  int64_t accumulation = 1;
  ScheduleOptions schedule = {};
  OptimizerOptions optimizer = {};
  double max_gradient_norm = 1;
  std::optional<int64_t> evaluate_every = {};  // default a tenth of the steps
  std::optional<int64_t> save_every = {};      // default whenever it evaluates
  int64_t log_every = 10;
  int64_t keep_last = 2;
  int64_t patience = 0;      // 0: never stop early
  int64_t average_last = 0;  // 0: no averaging
  double ema_decay = 0;      // 0: no moving average
  bool activation_checkpointing = false;
  Precision precision = Precision::kFp32;  // of training steps; evaluations are float32
  bool tensorboard = true;
  int64_t seed = 0;
  // These are no user's options: they tell whether the curve begins with an evaluation of the model, and of its
  // teacher, before a step.
  bool evaluate_start = false;
  bool evaluate_teacher = false;
};

Fields fields(TrainOptions& options);

// Fills in when to evaluate and to save.
TrainOptions resolve(TrainOptions options);

// Training ran into numbers that are not finite. Other learning rates may do better.
class Diverged : public Error {
 public:
  using Error::Error;
};

struct TrainResult {
  int64_t steps = 0;
  int64_t tokens = 0;
  double best_loss = 0;  // Evaluation::criterion() of the best evaluation
  int64_t best_step = 0;
  bool stopped_early = false;
  double seconds = 0;            // of training, all processes of the run together, evaluations left out
  double tokens_per_second = 0;  // tokens / seconds
  std::string precision = {};    // of the training steps: "fp32", "bf16" or "bf16x3"
  std::string best_model = {};   // directory; empty without validation data
  Gap gap = {};                  // where evaluated
};

nlohmann::json to_json(const TrainResult& result);

class Trainer {
 public:
  // All references must outlive the trainer. `stop_requested` is asked after every step.
  //
  // With a reducer of several processes each has a trainer over the same data and options, and a step is one of all of
  // them together. Process 0 alone writes: the directories of the others look on, and their observers hear of steps,
  // and of evaluations without scores or progress. Process 0 also evaluates, loads checkpoints and keeps the moving
  // average, while the others wait, and tells them what it found. All stop after the same step, whoever is asked to.
  Trainer(Task& task, const TrainOptions& options, RunDirectory& directory, std::vector<Observer*> observers,
          std::function<bool()> stop_requested = {}, Reducer& reducer = one_process());

  // Reports to one more observer, which must outlive the run.
  void observe(Observer* observer) { observers_.push_back(observer); }

  // Loads the newest whole checkpoint of the run directory and returns its step; a notice says where newer ones are
  // damaged. Returns nothing for a run that ended before its first checkpoint. Continuing gives the same numbers, to
  // the last bit, as not having stopped (same machine, same number of threads). Throws Error when no checkpoint is
  // whole, when they are gone, for one of other options, and for fewer steps than are done; nothing has been changed
  // then.
  std::optional<int64_t> resume();

  // Trains up to options.steps. Throws Interrupted, after saving a checkpoint, when asked to stop;
  // throws Diverged, before touching the parameters, when the loss or the gradient is not finite.
  TrainResult run();

 private:
  struct Progress {  // everything besides tensors that a checkpoint holds
    int64_t step = 0;
    int64_t tokens = 0;
    double seconds = 0;
    std::optional<double> best_loss;
    int64_t best_step = 0;
    int64_t evaluations_without_gain = 0;
    Gap gap;
  };

  double train_one_step();
  void report_step(double loss);
  TrainingState load(const fs::path& checkpoint, NamedTensors* tensors);
  std::optional<TrainingState> load_newest(NamedTensors* tensors);
  void share_weights();
  void refuse_lost_checkpoints() const;
  void begin_curve();
  void evaluate(bool averaged = false);
  Task::Progress evaluation_progress(const Beat& beat);
  using Evaluate = std::function<std::optional<Evaluation>(const Task::Progress& progress)>;
  std::optional<Evaluation> evaluated_by_process_0(const Evaluate& evaluate);
  Evaluation evaluate_averaged(const Task::Progress& progress);
  void save_checkpoint(const std::string& kind);
  void save_best();
  void average_checkpoints();
  void publish_average();
  bool due(const std::optional<int64_t>& every) const;
  bool asked_to_stop();
  [[noreturn]] void refuse_non_finite(const StepSums& sums) const;
  TrainResult result() const;

  Task& task_;
  TrainOptions options_;
  RunDirectory& directory_;
  std::vector<Observer*> observers_;
  std::function<bool()> stop_requested_;
  Reducer& reducer_;
  std::shared_ptr<torch::nn::Module> model_;
  Optimizer optimizer_;
  std::optional<MovingAverage> average_;  // in process 0
  Progress progress_;
  bool stopped_early_ = false;
  double gradient_norm_ = 0;
  std::optional<double> plain_loss_;
  int64_t tokens_at_report_ = 0;
  double seconds_at_report_ = 0;
  double seconds_before_ = 0;  // of earlier processes of this run
};

}  // namespace headshare
