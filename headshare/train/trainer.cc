#include "headshare/train/trainer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/train/jsonl.h"
#include "headshare/train/other_data.h"

namespace headshare {
namespace {

c10::Device device_of(Task& task) { return task.model()->parameters().front().device(); }

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Trainer::Trainer(Task& task, const TrainOptions& options, RunDirectory& directory, std::vector<Observer*> observers,
                 std::function<bool()> stop_requested, Reducer& reducer)
    : task_(task),
      options_(resolve(options)),
      directory_(directory),
      observers_(std::move(observers)),
      stop_requested_(std::move(stop_requested)),
      reducer_(reducer),
      model_(task.model()),
      optimizer_(*model_, options.optimizer, reducer) {
  options_.precision = resolve_precision(options_.precision, device_of(task));
  options_.keep_last = std::max(options_.keep_last, options_.average_last);
  check_schedule(options_.schedule, options_.steps);
  // Weights are averaged where they are evaluated and saved.
  if (options_.ema_decay > 0 && leads(reducer_)) average_.emplace(*model_, options_.ema_decay);
}

void Trainer::refuse_non_finite(const StepSums& sums) const {
  const auto last = directory_.last_checkpoint();
  const auto [what, value] = *sums.not_finite();
  throw Diverged(join_text("the ", what, " became ", value, " in step ", progress_.step + 1, " (learning rate ",
                           learning_rate_at(options_.schedule, progress_.step, options_.steps),
                           "); the parameters were not touched. ",
                           last ? "The last good checkpoint is " + last->string() : "There is no checkpoint yet",
                           ". Try a smaller --learning-rate, a longer warm-up or a smaller --max-gradient-norm"));
}

double Trainer::train_one_step() {
  const StepOptions step{.accumulation = options_.accumulation,
                         .precision = options_.precision,
                         .max_gradient_norm = options_.max_gradient_norm};
  const double rate = learning_rate_at(options_.schedule, progress_.step, options_.steps);
  const StepSums sums = take_step(task_, optimizer_, step, progress_.step, rate);
  if (sums.not_finite()) refuse_non_finite(sums);
  if (average_) average_->update();
  plain_loss_ = sums.plain_loss;
  gradient_norm_ = sums.gradient_norm;
  ++progress_.step;
  progress_.tokens += sums.targets;
  return sums.loss;
}

void Trainer::report_step(double loss) {
  const double elapsed = std::max(progress_.seconds - seconds_at_report_, 1e-9);
  const StepReport report{.step = progress_.step,
                          .total_steps = options_.steps,
                          .loss = loss,
                          .plain_loss = plain_loss_,
                          .learning_rate = learning_rate_at(options_.schedule, progress_.step - 1, options_.steps),
                          .gradient_norm = gradient_norm_,
                          .tokens_per_second = static_cast<double>(progress_.tokens - tokens_at_report_) / elapsed,
                          .tokens = progress_.tokens,
                          .epochs = task_.epochs(),
                          .seconds = progress_.seconds - seconds_before_};
  for (Observer* observer : observers_) observer->on_step(report);
  tokens_at_report_ = progress_.tokens;
  seconds_at_report_ = progress_.seconds;
}

Task::Progress Trainer::evaluation_progress(const Beat& beat) {
  return [this, beat](int64_t done, int64_t total) {
    beat();
    // Later evaluations are waited for, because a checkpoint depends on them; here nothing is lost.
    if (progress_.step == 0 && stop_requested_ && stop_requested_()) throw Interrupted("stopped before the first step");
    for (Observer* observer : observers_) observer->on_evaluation_progress(done, total);
  };
}

// Returns what process 0 finds. The others wait for it and get its numbers, without scores.
std::optional<Evaluation> Trainer::evaluated_by_process_0(const Evaluate& evaluate) {
  std::optional<Evaluation> found;
  on_process_0(reducer_, [&](const Beat& beat) { found = evaluate(evaluation_progress(beat)); });
  std::array<double, 4> numbers = {};
  if (found) numbers = {1, found->loss, found->goal ? 1.0 : 0.0, found->goal.value_or(0)};
  reducer_.sum(numbers);
  if (leads(reducer_) || numbers[0] == 0) return found;
  return Evaluation{.loss = numbers[1], .goal = numbers[2] > 0 ? std::optional(numbers[3]) : std::nullopt};
}

// Fills in what stands before the first step. The teacher comes first: what is recovered is measured against it.
void Trainer::begin_curve() {
  if (options_.evaluate_teacher && !progress_.gap.teacher) {
    const std::optional<Evaluation> teacher =
        evaluated_by_process_0([this](const Task::Progress& progress) { return task_.evaluate_teacher(progress); });
    if (teacher) {
      for (Observer* observer : observers_) observer->on_teacher(*teacher);
      progress_.gap.teacher = teacher->criterion();
    }
  }
  if (options_.evaluate_start && progress_.step == 0) evaluate();
  const Gap& gap = progress_.gap;
  if (progress_.step == 0 && gap.start && gap.teacher && !gap.recovered(*gap.start)) {
    notice(*gap.start > *gap.teacher
               ? join_text("start ", *gap.start, " and teacher ", *gap.teacher,
                           " differ by less than 0.01%: there is no gap to recover")
               : join_text("the teacher's validation loss, ", *gap.teacher, ", is no smaller than the start's, ",
                           *gap.start, ": there is no gap to recover"));
  }
}

Evaluation Trainer::evaluate_averaged(const Task::Progress& progress) {
  if (average_) average_->swap();
  const auto restore = [this] {
    if (average_) average_->swap();
  };
  try {
    Evaluation evaluation = task_.evaluate(Part::kValidation, progress);
    restore();
    return evaluation;
  } catch (...) {
    restore();
    throw;
  }
}

void Trainer::evaluate(bool averaged) {
  const double began = now();
  if (!averaged) share_weights();
  const std::optional<Evaluation> found =
      evaluated_by_process_0([this](const Task::Progress& progress) { return evaluate_averaged(progress); });
  EvaluationReport report{.step = progress_.step, .evaluation = *found, .averaged = averaged};
  const double criterion = report.evaluation.criterion();
  report.seconds = now() - began;
  // A task's goal, such as an accuracy, is a number even where the scores behind it are none.
  const bool finite = std::isfinite(criterion) && std::isfinite(report.evaluation.loss);
  if (progress_.step == 0) progress_.gap.start = criterion;
  report.recovered = progress_.step == 0 ? std::nullopt : progress_.gap.recovered(criterion);
  report.best = finite && (!progress_.best_loss || criterion < *progress_.best_loss);
  if (report.best) {
    progress_.best_loss = criterion;
    progress_.best_step = progress_.step;
    progress_.evaluations_without_gain = 0;
    save_best();
  } else if (!averaged) {
    ++progress_.evaluations_without_gain;
  }
  for (Observer* observer : observers_) observer->on_evaluation(report);
  if (averaged) return;  // the run is over
  stopped_early_ = options_.patience > 0 && progress_.evaluations_without_gain >= options_.patience;
}

void Trainer::save_best() {
  if (!leads(reducer_)) return;
  if (average_) average_->swap();
  directory_.publish("best", progress_.step, /*keep=*/1, "best",
                     [this](const fs::path& fresh) { task_.save(fresh.string()); });
  if (average_) average_->swap();
}

// Saves a checkpoint of a kind of its own: one outside the schedule ("stopped") must not evict one that averaging
// needs.
void Trainer::save_checkpoint(const std::string& kind) {
  NamedTensors tensors = optimizer_.state();  // of all processes
  if (!leads(reducer_)) return;
  if (average_) tensors.merge(average_->state());
  for (Observer* observer : observers_) observer->flush();
  const auto written = directory_.publish(kind, progress_.step, options_.keep_last, "last", [&](const fs::path& fresh) {
    task_.save(fresh.string());
    write_tensors(fresh / "optimizer.safetensors", tensors);
    write_training_state(fresh / "training.json", {.step = progress_.step,
                                                   .tokens = progress_.tokens,
                                                   .seconds = progress_.seconds,
                                                   .best_loss = progress_.best_loss,
                                                   .best_step = progress_.best_step,
                                                   .evaluations_without_gain = progress_.evaluations_without_gain,
                                                   .gap = progress_.gap,
                                                   .task = task_.state()});
  });
  if (kind == "step") directory_.drop("stopped");
  for (Observer* observer : observers_) observer->on_checkpoint(progress_.step, written.string());
}

// Reads everything of a checkpoint before anything of the run changes. `tensors` gets the optimizer's.
TrainingState Trainer::load(const fs::path& checkpoint, NamedTensors* tensors) {
  const std::string where = checkpoint.string();
  TrainingState state = read_training_state(checkpoint / "training.json");
  const NamedTensors weights = read_tensors(checkpoint / "model.safetensors");
  *tensors = read_tensors(checkpoint / "optimizer.safetensors");
  load_tensors(*model_, weights, where + "/model.safetensors");
  optimizer_.load(*tensors, where + "/optimizer.safetensors");
  if (average_) average_->load(*tensors, where + "/optimizer.safetensors");
  task_.restore(state.task, where + "/training.json");
  return state;
}

// Throws Error where checkpoints are gone: starting again at step 0 would write over what a run has reached.
void Trainer::refuse_lost_checkpoints() const {
  const int64_t reached = last_step(directory_.path() / "metrics.jsonl");
  std::error_code ignored;
  const bool linked = fs::is_symlink(directory_.checkpoints() / "last", ignored);
  HS_CHECK(!linked && reached <= *options_.save_every, "the checkpoints of ", directory_.path().string(),
           " are gone, and its run had reached step ", reached, "; put checkpoints/ back, or start again in another ",
           "directory");
}

// Loads the newest whole checkpoint into this process; returns nothing where the run had none yet.
std::optional<TrainingState> Trainer::load_newest(NamedTensors* tensors) {
  const std::vector<fs::path> candidates = directory_.resumable();
  if (candidates.empty()) {
    refuse_lost_checkpoints();
    return std::nullopt;
  }
  std::optional<TrainingState> state;
  std::string damage;
  for (const fs::path& candidate : candidates) {
    try {
      state = load(candidate, tensors);
      if (!damage.empty()) notice(join_text("going on from ", candidate.string(), ": ", damage));
      break;
    } catch (const OtherData&) {
      throw;
    } catch (const Error& error) {
      if (damage.empty()) damage = error.what();  // the newest's
    }
  }
  HS_CHECK(state, damage);
  HS_CHECK(state->step <= options_.steps, directory_.path().string(), " is trained for ", state->step,
           " steps already, more than --steps ", options_.steps, "; ask for more, or use another --out");
  if (state->best_loss && !directory_.best_model()) {
    notice(join_text("the best model, of step ", state->best_step, ", is gone from ", directory_.checkpoints().string(),
                     ": the next evaluation's is the best again"));
    state->best_loss.reset();
  }
  return state;
}

std::optional<int64_t> Trainer::resume() {
  NamedTensors tensors;
  std::optional<TrainingState> state;
  on_process_0(reducer_, [&](const Beat& /*beat*/) { state = load_newest(&tensors); });
  const std::string shared = text_of(reducer_, state ? to_json(*state).dump() : "");
  if (shared.empty()) return std::nullopt;
  if (!leads(reducer_)) {
    state = training_state_from_json(nlohmann::json::parse(shared), "process 0");
    task_.restore(state->task, "process 0");
  }
  optimizer_.share(tensors);
  progress_ = {.step = state->step,
               .tokens = state->tokens,
               .seconds = state->seconds,
               .best_loss = state->best_loss,
               .best_step = state->best_step,
               .evaluations_without_gain = state->evaluations_without_gain,
               .gap = state->gap};
  seconds_before_ = seconds_at_report_ = progress_.seconds;
  tokens_at_report_ = progress_.tokens;
  stopped_early_ = options_.patience > 0 && progress_.evaluations_without_gain >= options_.patience;
  return progress_.step;
}

bool Trainer::asked_to_stop() {
  return any_process(reducer_, stop_requested_ && stop_requested_()) && progress_.step < options_.steps;
}

// Gives all processes the parameters of process 0: those that it loaded, or the initial ones, and those that it
// evaluates, so that no rounding of another kind of processor stays in a copy.
void Trainer::share_weights() {
  if (reducer_.size() == 1) return;
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : model_tensors(*model_)) {
    const Tensor whole = tensor.detach().contiguous();
    reducer_.broadcast(whole, 0);
    if (!tensor.is_contiguous()) tensor.detach().copy_(whole);
  }
}

bool Trainer::due(const std::optional<int64_t>& every) const {
  return progress_.step % *every == 0 || progress_.step == options_.steps;
}

void Trainer::average_checkpoints() {
  if (!leads(reducer_)) {
    if (task_.has(Part::kValidation)) evaluate(/*averaged=*/true);
    return;
  }
  const std::vector<fs::path> all = directory_.step_checkpoints();
  const size_t count = std::min(all.size(), static_cast<size_t>(options_.average_last));
  NamedTensors mean;
  for (size_t i = all.size() - count; i < all.size(); ++i) {
    for (auto& [name, tensor] : read_tensors(all[i] / "model.safetensors")) {
      const auto [slot, fresh] = mean.emplace(name, tensor / static_cast<double>(count));
      if (!fresh) slot->second += tensor / static_cast<double>(count);
    }
  }
  NamedTensors before;
  for (const auto& [name, tensor] : model_tensors(*model_)) before.emplace(name, tensor.detach().clone());
  load_tensors(*model_, mean, "the average of the last checkpoints");
  // The average is one more candidate for the best model; the run itself goes on from its own weights.
  if (task_.has(Part::kValidation)) {
    average_.reset();
    evaluate(/*averaged=*/true);
  } else {
    publish_average();
  }
  load_tensors(*model_, before, "the weights before averaging");
}

// Publishes the averaged weights. Without validation data nothing is "best", and averaged weights are what the run was
// for.
void Trainer::publish_average() {
  directory_.publish("average", progress_.step, /*keep=*/1, "average",
                     [this](const fs::path& fresh) { task_.save(fresh.string()); });
}

TrainResult Trainer::result() const {
  TrainResult result{.steps = progress_.step,
                     .tokens = progress_.tokens,
                     .best_loss = progress_.best_loss.value_or(std::nan("")),
                     .best_step = progress_.best_step,
                     .stopped_early = stopped_early_,
                     .seconds = progress_.seconds,
                     .tokens_per_second = static_cast<double>(progress_.tokens) / std::max(progress_.seconds, 1e-9)};
  result.precision = precision_name(options_.precision);
  result.gap = progress_.gap;
  if (const auto best = directory_.best_model()) result.best_model = best->string();
  return result;
}

TrainResult Trainer::run() {
  const bool judged = task_.has(Part::kValidation);
  share_weights();
  if (judged) begin_curve();
  while (progress_.step < options_.steps && !stopped_early_) {
    const double began = now();
    const double loss = train_one_step();
    progress_.seconds += now() - began;
    if (due(options_.log_every) || progress_.step == 1) report_step(loss);
    if (judged && due(options_.evaluate_every)) evaluate();
    const bool stops = asked_to_stop();
    const bool scheduled = due(options_.save_every) || stopped_early_;
    if (scheduled || stops) save_checkpoint(scheduled ? "step" : "stopped");
    if (stops) {
      throw Interrupted(join_text("stopped after step ", progress_.step, " of ", options_.steps,
                                  "; a checkpoint is in ", directory_.path().string()));
    }
  }
  if (options_.average_last > 0) {
    average_checkpoints();
  } else if (average_ && !judged) {
    average_->swap();
    publish_average();
    average_->swap();
  }
  return result();
}

}  // namespace headshare
