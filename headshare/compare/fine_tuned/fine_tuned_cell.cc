#include "headshare/compare/fine_tuned/fine_tuned_cell.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/base/proc.h"
#include "headshare/compare/cell_run.h"
#include "headshare/compare/fine_tuned/encoders.h"
#include "headshare/compare/learning_curve.h"
#include "headshare/compare/measure.h"
#include "headshare/models/noted_weights.h"
#include "headshare/ops/device_memory.h"
#include "headshare/tasks/finetune/fine_tuning_options.h"
#include "headshare/tasks/finetune/rate_search.h"

namespace headshare {
namespace {

constexpr double kPerCent = 100;

// ManyRuns reports runs that follow one another as one: the share done grows from 0 to 1 over all of them.
class ManyRuns : public Observer {
 public:
  ManyRuns(Observer& listener, int64_t runs) : listener_(listener), runs_(runs) {}

  void next() { ++begun_; }

  void on_step(const StepReport& report) override {
    StepReport whole = report;
    whole.step = (begun_ - 1) * report.total_steps + report.step;
    whole.total_steps = runs_ * report.total_steps;
    listener_.on_step(whole);
  }
  void on_evaluation_progress(int64_t done, int64_t total) override { listener_.on_evaluation_progress(done, total); }

 private:
  Observer& listener_;
  int64_t runs_;
  int64_t begun_ = 0;
};

// A FineTunedRun holds a model of one task and the figures of its training that the report needs.
struct FineTunedRun {
  FineTunedModel model;
  double full_goal = 1;
  std::vector<CurvePoint> curve = {};
  int64_t best_step = 0;
  int64_t examples = 0;  // examples seen in training
};

class FineTunedCell {
 public:
  FineTunedCell(const CellPlan& plan, const CellPlace& place, c10::Device device, Observer& observer,
                const std::function<bool()>& stop_requested)
      : plan_(plan),
        options_(plan.options.own<BenchmarkOptions>()),
        home_(place.own),
        processes_(place.processes),
        device_(device),
        jobs_(fine_tuning_jobs(plan.options)),
        rates_(values_of(options_.tuning.learning_rates)),
        progress_(observer, static_cast<int64_t>(jobs_.size() * rates_.size())),
        stop_requested_(stop_requested),
        encoders_(find_encoders(options_.encoders)),
        checkpoint_(encoder_of(encoders_, plan.key.variant, plan.key.seed)),
        encoder_(load_encoder_model(checkpoint_)) {
    check_planned_weights(plan_, kEncoderWeights, checkpoint_);
    if (leads(processes_)) note_weights(home_, checkpoint_);
  }

  // Takes part in the training of all models, in a process other than 0.
  void train_along() {
    for (const std::string& name : jobs_) {
      const std::unique_ptr<FineTuneJob> job = open(name);
      check_planned_data(plan_, name, job->fingerprint());
      search(*job);
    }
  }

  Cell run() {
    const WaitMeter machine = watch_machine();
    std::vector<FineTunedRun> best;
    bool test_part = true;  // whether every task has one
    for (const std::string& name : jobs_) {
      const std::unique_ptr<FineTuneJob> job = open(name);
      check_planned_data(plan_, name, job->fingerprint());
      test_part = test_part && job->scores_test();
      best.push_back(best_run(*job));
    }
    Cell cell = gathered(best, test_part);
    if (!resumed_) cell.waited.training = machine.share();
    return cell;
  }

 private:
  std::unique_ptr<FineTuneJob> open(const std::string& name) const {
    try {
      return open_job(name, options_.job, encoder_);
    } catch (const Error& error) {
      throw Error(name + ": " + in_fine_tuning_words(error.what()));
    }
  }

  fs::path home_of(const FineTuneJob& job, double rate) const {
    return home_ / job_folder(job.name()) / join_text("lr-", rate);
  }

  FineTuneRun run_of(FineTuneJob& job, double rate) const {
    return {job, options_.job.tuning, options_.tuning, rate, plan_.key.seed, device_, processes_};
  }

  FineTunedModel run_one(FineTuneJob& job, double rate) {
    progress_.next();
    resumed_ = resumed_ || fs::exists(home_of(job, rate) / "result.json");
    if (any_process(processes_, stop_requested_()))
      throw Interrupted(join_text("stopped before ", job.name(), " with learning rate ", rate));
    try {
      return fine_tune(run_of(job, rate), home_of(job, rate), options_.keep_models, &progress_, stop_requested_);
    } catch (const Diverged&) {
      throw;
    } catch (const Error& error) {  // another rate would not help
      throw Error(job.name() + ": " + in_fine_tuning_words(error.what()));
    }
  }

  RateSearch search(FineTuneJob& job) {
    return search_rates(
        rates_, {plan_.key.seed}, [&](double rate, int64_t) { return run_one(job, rate); },
        [&](double rate, const Diverged& reason) {
          const std::string failure =
              join_text(job.name(), " with learning rate ", rate, ": ", in_fine_tuning_words(reason.what()));
          if (rates_.size() > 1) notice(failure);
          return failure;
        });
  }

  FineTunedRun best_run(FineTuneJob& job) {
    RateSearch found = search(job);
    HS_CHECK(!found.models.empty(), found.failures.back());
    FineTunedRun best{.model = std::move(found.models.front()), .full_goal = job.full_goal()};
    const FineTunedModel& model = best.model;
    const int64_t epoch = *train_options(run_of(job, model.learning_rate)).evaluate_every;
    best.best_step = std::llround(model.best_epoch * static_cast<double>(epoch));
    best.examples = model.steps * options_.job.tuning.batch_size * options_.tuning.accumulation;
    best.curve = read_curve(home_of(job, model.learning_rate) / "metrics.jsonl",
                            model.seconds / static_cast<double>(model.steps));
    return best;
  }

  // Returns the validation loss of the best epoch; the curve has one evaluation for each epoch.
  static double best_loss(const std::string& name, const FineTunedRun& run) {
    for (const CurvePoint& point : run.curve) {
      if (point.step == run.best_step) return point.validation_loss;
    }
    throw Error(join_text(name, ": metrics.jsonl does not have the evaluation of step ", run.best_step,
                          "; delete this task's directory in the cell to train it again"));
  }

  // Returns the scores of the part that counts, then the scores of the task's relatives under their names: "mnli-mm
  // accuracy".
  static std::vector<Score> metrics_of(const FineTunedRun& run, const PartScores& counts) {
    std::vector<Score> metrics = counts.scores;
    for (const PartScores& part : run.model.parts) {
      if (part.part == counts.part || part.part == run.model.parts.front().part) continue;
      for (Score score : part.scores) {
        score.name = part.part + " " + score.name;
        metrics.push_back(std::move(score));
      }
    }
    return metrics;
  }

  static FineTunedTask task_of(const std::string& name, const FineTunedRun& run, bool test_part) {
    const PartScores& part = test_part ? run.model.parts.back() : run.model.parts.front();
    const double goal = test_part ? part.goal : average_goal(run.model);
    std::optional<Coverage> coverage = part.coverage;
    if (coverage && coverage->unseen_score) *coverage->unseen_score *= kPerCent / run.full_goal;
    return {.task = name,
            .score = std::isfinite(goal) ? kPerCent * goal / run.full_goal : 0,
            .metrics = metrics_of(run, part),
            .examples = part.examples,
            .learning_rate = run.model.learning_rate,
            .best_epoch = run.model.best_epoch,
            .validation_loss = best_loss(name, run),
            .coverage = coverage};
  }

  void add_costs(Cell* cell) const {
    const EncoderOptions model = starting_options(encoder_.model->options(), {}, options_.job.tuning);
    cell->size = measure(model);
    cell->options = resolved_options(plan_.options, model);
    cell->training_tokens_per_second = static_cast<double>(cell->tokens) / std::max(cell->training_seconds, 1e-9);
    cell->peak_memory_bytes = peak_memory_bytes();
    cell->peak_device_bytes = peak_device_bytes(device_);
    cell->attention_memory_bytes = attention_memory_bytes(model, options_.job.tuning.batch_size, device_);
  }

  Cell gathered(const std::vector<FineTunedRun>& best, bool test_part) const {
    Cell cell{.key = plan_.key, .encoder_seed = encoder_seed(encoders_, plan_.key.seed)};
    const auto count = static_cast<double>(best.size());
    for (size_t i = 0; i < best.size(); ++i) {
      const FineTunedRun& run = best[i];
      cell.tasks.push_back(task_of(jobs_[i], run, test_part));
      cell.quality += cell.tasks.back().score / count;
      cell.validation_loss += cell.tasks.back().validation_loss / count;
      cell.steps += run.model.steps;
      cell.best_step += run.best_step;
      cell.tokens += run.examples;
      cell.training_seconds += run.model.seconds;
    }
    cell.test_loss = cell.validation_loss;
    cell.signature =
        join_text("mean-of-tasks|tasks:", best.size(), "|part:", test_part ? "test" : "validation", "|scale:100");
    if (best.size() == 1) cell.curve = best.front().curve;
    if (best.size() >= kFewestTasksToDraw) {
      for (const FineTunedTask& task : cell.tasks) cell.blocks.push_back(task.score);
    }
    cell.model = (fs::path("cells") / plan_.directory()).string();
    add_costs(&cell);
    return cell;
  }

  // With one seed, intervals come from drawing tasks, if there are at least this many; fewer say nothing of other
  // tasks.
  static constexpr size_t kFewestTasksToDraw = 5;

  const CellPlan& plan_;
  const BenchmarkOptions& options_;
  fs::path home_;
  Reducer& processes_;
  c10::Device device_;
  std::vector<std::string> jobs_;
  std::vector<double> rates_;
  ManyRuns progress_;
  const std::function<bool()>& stop_requested_;
  EncoderSet encoders_;
  fs::path checkpoint_;
  LoadedEncoder encoder_;
  bool resumed_ = false;  // another process ran part of the training, and its waiting is not known
};

}  // namespace

Cell run_fine_tuned_cell(const CellPlan& plan, const CellPlace& place, c10::Device device, Observer& observer,
                         const std::function<bool()>& stop_requested) {
  if (!leads(place.processes)) {
    FineTunedCell(plan, place, device, observer, stop_requested).train_along();
    return {};
  }
  make_directories(place.own);
  Cell cell = FineTunedCell(plan, place, device, observer, stop_requested).run();
  write_cell(place, &cell);
  return cell;
}

}  // namespace headshare
