#include "headshare/tasks/finetune/fine_tuning.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_text.h"
#include "headshare/metrics/coverage.h"
#include "headshare/train/file_observers.h"
#include "headshare/train/training_shape.h"

namespace headshare {
namespace {

constexpr int64_t kResultVersion = 1;
constexpr const char* kResultFile = "result.json";
constexpr uint64_t kMostResultBytes = 16 << 20;

nlohmann::ordered_json to_json(const PartScores& part) {
  nlohmann::ordered_json object = {{"part", part.part}, {"examples", part.examples}, {"goal", part.goal}};
  for (const Score& score : part.scores) {
    object["scores"].push_back({{"name", score.name}, {"value", score.value}, {"signature", score.signature}});
  }
  if (part.coverage) object["coverage"] = to_json(*part.coverage);
  return object;
}

// Reads null, which stands for "not a number": JSON has none.
double number_or_nan(const nlohmann::json& value) { return value.is_null() ? std::nan("") : value.get<double>(); }

PartScores part_from_json(const nlohmann::json& object) {
  PartScores part{
      .part = object.at("part"), .goal = number_or_nan(object.at("goal")), .examples = object.at("examples")};
  for (const nlohmann::json& score : object.at("scores")) {
    part.scores.push_back(
        {.name = score.at("name"), .value = number_or_nan(score.at("value")), .signature = score.at("signature")});
  }
  if (object.contains("coverage")) part.coverage = coverage_from_json(object["coverage"], part.part);
  return part;
}

FineTunedModel model_from_json(const nlohmann::json& object) {
  FineTunedModel model{.learning_rate = object.at("learning_rate"),
                       .seed = object.at("seed"),
                       .steps = object.at("steps"),
                       .best_epoch = object.at("best_epoch"),
                       .seconds = object.at("seconds")};
  for (const nlohmann::json& part : object.at("parts")) model.parts.push_back(part_from_json(part));
  return model;
}

FineTunedModel read_result(const fs::path& path) {
  try {
    const nlohmann::json object =
        read_json_file(path, kMostResultBytes, "it is damaged; delete it to train this model again");
    HS_CHECK(object.at("version") == kResultVersion, path.string(), " has version ", object.at("version").dump(),
             "; this headshare reads ", kResultVersion);
    return model_from_json(object);
  } catch (const nlohmann::json::exception& damage) {
    throw Error(join_text(path.string(), " is damaged (", damage.what(), "); delete it to train this model again"));
  }
}

int64_t steps_per_epoch(const FineTuneRun& run) {
  const int64_t batch = run.tuning.batch_size * run.options.accumulation;
  return (run.job.examples() + batch - 1) / batch;
}

void load_best(Task& task, const TrainResult& result) {
  const fs::path weights = fs::path(result.best_model) / "model.safetensors";
  load_tensors(*task.model(), read_tensors(weights), weights.string());
}

// Returns the model that process 0 has, in all processes.
FineTunedModel shared_model(Reducer& processes, const std::optional<FineTunedModel>& model) {
  const std::string text = text_of(processes, model ? headshare::to_json(*model).dump() : "");
  return leads(processes) ? *model : model_from_json(nlohmann::json::parse(text));
}

TrainResult train_model(const FineTuneRun& run, const TrainOptions& options, Task& task, RunDirectory& home,
                        Observer* observer, const std::function<bool()>& stop_requested) {
  Trainer trainer(task, options, home, {}, stop_requested, run.processes);
  const std::optional<int64_t> start = trainer.resume();
  std::unique_ptr<Observer> jsonl;
  if (leads(run.processes)) {
    if (!start) home.clear();  // removes what a process left that was killed before its first checkpoint
    jsonl = make_jsonl_observer(home.path() / "metrics.jsonl", start);
    trainer.observe(observer);
    trainer.observe(jsonl.get());
  }
  TrainResult result = trainer.run();
  if (std::isnan(result.best_loss)) {
    throw Diverged("no epoch had a finite validation loss; try a smaller --learning-rate or a longer warm-up");
  }
  return result;
}

// Scores the best epoch's model and keeps what it answers.
FineTunedModel judge_model(const FineTuneRun& run, const TrainOptions& options, const TrainResult& result, Task& task,
                           const RunDirectory& home, const Task::Progress& progress) {
  load_best(task, result);
  FineTunedModel model{
      .learning_rate = run.learning_rate,
      .seed = run.seed,
      .steps = result.steps,
      .best_epoch = static_cast<double>(result.best_step) / static_cast<double>(*options.evaluate_every),
      .seconds = result.seconds};
  model.parts = run.job.judge(task, home.path(), progress);
  write_file(home.path() / kResultFile, json_text(headshare::to_json(model), 2) + "\n");
  return model;
}

// Drops the checkpoints that a finished model does not need: all but its best.
void drop_finished(RunDirectory& home, bool keep_model) {
  for (const char* kind : {"step", "stopped"}) home.drop(kind);
  if (!keep_model) home.drop("best");
}

}  // namespace

Fields fields(FineTuneLearning& o) {
  return {
      field("learning-rate", &o.learning_rates,
            "peak of a linear decay; with several (2e-5,5e-5) each is run and the best by validation reported",
            {.aliases = {"learning-rates", "lr"}}),
      field("warmup-ratio", &o.warmup_ratio, "share of the steps in which the rate rises", {.min = 0, .max = 1}),
      field("weight-decay", &o.weight_decay, "of matrices", {.min = 0}),
      field("beta2", &o.beta2, "AdamW's decay of squared gradients",
            {.min = 0, .max = 0.999999, .aliases = {"adam-beta2"}}),
      field("max-gradient-norm", &o.max_gradient_norm, "longer gradients are scaled down to this; 0: never",
            {.min = 0, .aliases = {"max-grad-norm"}}),
      field("accumulation", &o.accumulation, "batches whose gradients one step sums",
            {.min = 1, .max = 1 << 20, .aliases = {"gradient-accumulation-steps"}}),
      field("patience", &o.patience, "stop after this many epochs without a better one; 0: never", {.min = 0}),
      precision_field(&o.precision),
  };
}

void check_learning_rates(const FineTuneLearning& options) {
  HS_CHECK(!options.learning_rates.empty(), "--learning-rate is empty");
  std::vector<double> seen;
  for (const auto& [rate, spelling] : options.learning_rates) {
    HS_CHECK(rate > 0, "--learning-rate ", spelling, " is not a number above 0");
    HS_CHECK(std::find(seen.begin(), seen.end(), rate) == seen.end(), "--learning-rate has ", spelling, " twice");
    seen.push_back(rate);
  }
}

double FineTunedModel::validation_goal() const {
  const double goal = parts.front().goal;
  return std::isfinite(goal) ? goal : -1;
}

double average_goal(const FineTunedModel& model) {
  const double matched = model.parts.front().goal;
  for (const PartScores& part : model.parts) {
    if (part.part == kMismatched) return (matched + part.goal) / 2;
  }
  return matched;
}

nlohmann::ordered_json to_json(const FineTunedModel& model) {
  nlohmann::ordered_json object = {
      {"version", kResultVersion}, {"learning_rate", model.learning_rate}, {"seed", model.seed},
      {"steps", model.steps},      {"best_epoch", model.best_epoch},       {"seconds", model.seconds}};
  for (const PartScores& part : model.parts) object["parts"].push_back(to_json(part));
  return object;
}

TrainOptions train_options(const FineTuneRun& run) {
  const int64_t epoch = steps_per_epoch(run);
  TrainOptions train;
  train.steps = run.tuning.epochs * epoch;
  train.accumulation = run.options.accumulation;
  train.schedule = {
      .schedule = Schedule::kLinear, .learning_rate = run.learning_rate, .warmup_ratio = run.options.warmup_ratio};
  train.optimizer.beta2 = run.options.beta2;
  train.optimizer.weight_decay = run.options.weight_decay;
  train.max_gradient_norm = run.options.max_gradient_norm;
  train.evaluate_every = train.save_every = epoch;
  train.log_every = std::max<int64_t>(1, epoch / 10);
  train.keep_last = 1;
  train.patience = run.options.patience;
  train.precision = run.options.precision;
  train.seed = run.seed;
  train.optimizer.shard = run.shard_optimizer;
  train.evaluate_teacher = true;  // does nothing without a teacher
  return train;
}

FineTunedModel fine_tune(const FineTuneRun& run, const fs::path& directory, bool keep_model, Observer* observer,
                         const std::function<bool()>& stop_requested) {
  std::optional<RunDirectory> home;
  std::optional<FineTunedModel> model;
  on_process_0(run.processes, [&](const Beat& /*beat*/) {
    for (const fs::path& folder : {directory, directory / "checkpoints"}) remove_partials(folder);  // of a killed call
    home.emplace(directory);
    if (!fs::exists(directory / kResultFile)) return;
    drop_finished(*home, keep_model);  // a call that was killed before this step did not
    model = read_result(directory / kResultFile);
  });
  if (any_process(run.processes, model.has_value())) return shared_model(run.processes, model);
  if (!home) home.emplace(directory, /*looks_on=*/true);
  const TrainOptions options = train_options(run);
  const std::unique_ptr<Task> task =
      run.job.start(static_cast<uint64_t>(run.seed), run.device, training_shape(options));
  const TrainResult result = train_model(run, options, *task, *home, observer, stop_requested);
  on_process_0(run.processes, [&](const Beat& beat) {
    model = judge_model(run, options, result, *task, *home, [&](int64_t done, int64_t total) {
      beat();
      observer->on_evaluation_progress(done, total);
    });
    drop_finished(*home, keep_model);
  });
  return shared_model(run.processes, model);
}

}  // namespace headshare
