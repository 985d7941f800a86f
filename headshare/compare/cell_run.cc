#include "headshare/compare/cell_run.h"

#include <algorithm>
#include <optional>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/proc.h"
#include "headshare/compare/learning_curve.h"
#include "headshare/compare/measure.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/noted_weights.h"
#include "headshare/ops/device_memory.h"
#include "headshare/report/results/results_json.h"
#include "headshare/report/statistics/comparability.h"
#include "headshare/train/file_observers.h"
#include "headshare/train/plateau.h"

namespace headshare {
namespace {

// A bootstrap draws from at most this many blocks: more would not change an interval, and neighbouring blocks are not
// independent.
constexpr size_t kMostBlocks = 200;

constexpr uint64_t kMostCellBytes = 1 << 28;

// Joins runs of equally many neighbouring blocks, so that at most kMostBlocks are left; a block's weight is the number
// of its targets.
void take_blocks(const Evaluation& found, Cell* cell) {
  cell->blocks.clear();
  cell->block_targets.clear();
  const size_t count = found.blocks.size();
  const size_t run = (count + kMostBlocks - 1) / kMostBlocks;
  for (size_t begin = 0; begin < count; begin += run) {
    double sum = 0;
    int64_t targets = 0;
    for (size_t i = begin; i < std::min(begin + run, count); ++i) {
      const int64_t weight = found.block_targets.empty() ? 1 : found.block_targets[i];
      sum += static_cast<double>(weight) * found.blocks[i];
      targets += weight;
    }
    cell->blocks.push_back(sum / static_cast<double>(targets));
    cell->block_targets.push_back(targets);
  }
}

void load_weights(Task& task, const fs::path& checkpoint) {
  const fs::path weights = checkpoint / "model.safetensors";
  load_tensors(*task.model(), read_tensors(weights), weights.string());
}

// Writes all outputs of the model into a file and takes the examples that readers see into the cell.
void take_outputs(const Evaluation& found, const Subject& subject, const fs::path& home, Cell* cell) {
  cell->examples.clear();
  for (const WrittenExample& one : subject.examples) {
    cell->examples.push_back(found.outputs.at(static_cast<size_t>(one.item)));
  }
  if (found.output_seconds > 0) {
    cell->outputs_per_second = static_cast<double>(found.outputs.size()) / found.output_seconds;
  }
  write_outputs(home, found.outputs);
}

// Evaluates the model on the part that is reported and takes quality, scores and outputs into the cell.
void score(Task& task, const Subject& subject, Observer& observer, const fs::path& home, Cell* cell) {
  const Part part = subject.has_test_part ? Part::kTest : Part::kValidation;
  const WaitMeter machine = watch_machine();
  const Evaluation found =
      task.evaluate(part, [&observer](int64_t done, int64_t total) { observer.on_evaluation_progress(done, total); });
  cell->test_loss = found.loss;
  take_blocks(found, cell);
  take_outputs(found, subject, home, cell);
  if (cell->outputs_per_second > 0) cell->waited.outputs = machine.share();
  cell->scores.clear();
  for (const Score& score : found.scores) {
    if (score.name == subject.measure) {
      cell->quality = score.value;
      cell->signature = score.signature;
    } else {
      cell->scores.push_back(score);
    }
  }
}

void take_result(const TrainResult& result, Cell* cell) {
  cell->validation_loss = result.best_loss;
  cell->steps = result.steps;
  cell->best_step = result.best_step;
  cell->tokens = result.tokens;
  cell->stopped_early = result.stopped_early;
  cell->training_seconds = result.seconds;
  cell->training_tokens_per_second = result.tokens_per_second;
}

TrainResult train(const CellPlan& plan, Task& task, const CellPlace& place, Observer& observer,
                  const std::function<bool()>& stop_requested) {
  const fs::path& home = place.own;
  RunDirectory run(home);
  Trainer trainer(task, plan.options.train, run, {&observer}, stop_requested, place.processes);
  const std::optional<int64_t> resumed_after = trainer.resume();
  if (!resumed_after) run.clear();
  const auto metrics = make_jsonl_observer(home / "metrics.jsonl", resumed_after);
  trainer.observe(metrics.get());
  std::optional<PlateauWatch> plateau;
  if (const std::optional<double> entropy = task.unigram_entropy()) {
    trainer.observe(&plateau.emplace(*entropy, task.plateau_advice()));
  }
  const TrainResult result = trainer.run();
  HS_CHECK(!result.best_model.empty(), "no finite validation loss was ever reached; try a smaller --learning-rate");
  load_weights(task, result.best_model);
  return result;
}

void check_teacher_weights(const CellPlan& plan) {
  const std::string& teacher = plan.options.own<TextOptions>().distillation.teacher;
  if (!teacher.empty()) check_planned_weights(plan, kTeacherWeights, find_checkpoint(teacher));
}

// Computes this process's share of a cell that process 0 works on.
void train_along(const CellPlan& plan, const Experiment& experiment, const CellPlace& place, c10::Device device,
                 const std::function<bool()>& stop_requested) {
  if (plan.weights_of) return;  // nothing is trained
  check_planned_data(plan, kWholeData, experiment.subject().fingerprint);
  check_teacher_weights(plan);
  const Trial trial = open_trial(experiment, plan.options, device);
  RunDirectory run(place.own, /*looks_on=*/true);
  Trainer trainer(*trial.task, plan.options.train, run, {}, stop_requested, place.processes);
  trainer.resume();
  trainer.run();
}

// Measures how fast the model decodes; encoders do not decode and get no figures.
void measure_decoding(const Trial& trial, Cell* cell) {
  const WaitMeter machine = watch_machine();
  const std::optional<DecodingSpeed> speed = decoding_speed(trial);
  if (!speed) return;
  cell->waited.decoding = machine.share();
  cell->decoding_tokens_per_second = speed->tokens_per_second;
  cell->decoding_context = speed->context;
}

Cell trained_cell(const CellPlan& plan, const Experiment& experiment, const CellPlace& place, c10::Device device,
                  Observer& observer, const std::function<bool()>& stop_requested) {
  const fs::path& home = place.own;
  Cell cell{.key = plan.key};
  const Subject subject = experiment.subject();
  check_planned_data(plan, kWholeData, subject.fingerprint);
  check_teacher_weights(plan);
  const Trial trial = open_trial(experiment, plan.options, device);
  const WaitMeter machine = watch_machine();
  const TrainResult result = train(plan, *trial.task, place, observer, stop_requested);
  take_result(result, &cell);
  cell.waited.training = machine.share();
  cell.curve = read_curve(home / "metrics.jsonl", result.seconds / static_cast<double>(result.steps),
                          compares_loss(subject) ? "" : subject.measure);
  cell.model = (fs::path("cells") / plan.directory() / "checkpoints" / "best").string();
  cell.size = measure(trial.options);
  cell.options = resolved_options(plan.options, trial.options);
  score(*trial.task, subject, observer, home, &cell);
  cell.peak_memory_bytes = peak_memory_bytes();
  cell.peak_device_bytes = peak_device_bytes(device);
  cell.attention_memory_bytes = attention_memory_bytes(trial.options, plan.options.batch_size, device);
  measure_decoding(trial, &cell);
  return cell;
}

// Gives the weights of `trained` to another scheme: its quality is computed again, its training is not.
Cell rewritten_cell(const CellPlan& plan, const Experiment& experiment, const CellPlace& place, const Cell& trained,
                    c10::Device device, Observer& observer) {
  const Subject subject = experiment.subject();
  check_planned_data(plan, kWholeData, subject.fingerprint);
  Cell cell = trained;
  cell.key = plan.key;
  cell.weights_of = plan.weights_of->variant;
  // These figures belong to the training of mha; this scheme is not trained.
  cell.training_tokens_per_second = 0;
  cell.waited = {};
  cell.attention_memory_bytes = 0;
  cell.peak_memory_bytes = cell.peak_device_bytes = 0;
  const Trial trial = open_trial(experiment, plan.options, device);
  load_weights(*trial.task, place.home / trained.model);
  cell.size = measure(trial.options);
  cell.options = resolved_options(plan.options, trial.options);
  score(*trial.task, subject, observer, place.own, &cell);
  measure_decoding(trial, &cell);
  return cell;
}

Cell read_cell(const fs::path& path) {
  return cell_from_json(read_json_file(path, kMostCellBytes, "it is damaged; delete it to run that cell again"),
                        path.string());
}

}  // namespace

fs::path cell_home(const fs::path& home, const CellKey& key) { return home / "cells" / cell_directory(key); }

bool is_finished(const fs::path& home, const CellKey& key) { return path_exists(cell_home(home, key) / kCellFile); }

std::optional<Cell> finished_cell(const fs::path& home, const CellKey& key) {
  if (!is_finished(home, key)) return {};
  return read_cell(cell_home(home, key) / kCellFile);
}

void check_planned_data(const CellPlan& plan, const std::string& what, const std::string& fingerprint) {
  const auto planned = plan.data.find(what);
  if (planned == plan.data.end() || planned->second.empty()) return;
  if (planned->second == fingerprint) return;
  throw OtherData(join_text("the data ", what.empty() ? "" : "of " + what + " ",
                            "that this machine reads is not that of the plan: its fingerprint is ", fingerprint,
                            ", planned was ", planned->second,
                            "; give this machine the same files under the same names, or plan again"));
}

void check_planned_weights(const CellPlan& plan, const std::string& what, const fs::path& checkpoint) {
  if (plan.data.contains(what)) check_planned_data(plan, what, weights_fingerprint(checkpoint));
}

void write_cell(const CellPlace& place, Cell* cell) {
  cell->machine = place.machine;
  write_file(place.own / kCellFile, json_text(to_json(*cell), 2) + "\n");
}

Cell run_cell(const CellPlan& plan, const Experiment& experiment, const CellPlace& place, c10::Device device,
              Observer& observer, const std::function<bool()>& stop_requested) {
  Cell cell;
  if (!leads(place.processes)) {
    train_along(plan, experiment, place, device, stop_requested);
    return cell;
  }
  if (plan.weights_of) {
    const std::optional<Cell> trained = finished_cell(place.home, *plan.weights_of);
    HS_CHECK(trained, "needs the weights of ", plan.weights_of->variant, ", which was not trained");
    make_directories(place.own);
    cell = rewritten_cell(plan, experiment, place, *trained, device, observer);
  } else {
    cell = trained_cell(plan, experiment, place, device, observer, stop_requested);
  }
  write_cell(place, &cell);
  // The best model stays; the optimizer's moments, three times its size, are not needed any more.
  RunDirectory run(place.own);
  for (const char* kind : {"step", "stopped"}) run.drop(kind);
  return cell;
}

}  // namespace headshare
