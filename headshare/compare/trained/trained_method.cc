// This method trains models from the beginning.
#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/compare/cell_run.h"
#include "headshare/compare/cell_time.h"
#include "headshare/compare/comparison.h"
#include "headshare/compare/comparison_home.h"
#include "headshare/compare/measure.h"
#include "headshare/compare/method.h"
#include "headshare/compare/several_experiments.h"
#include "headshare/compare/until_decided.h"
#include "headshare/compare/variants.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/noted_weights.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

void explain_left_out(const ComparisonOptions& options) {
  for (const Variant& variant : chosen_variants(options)) {
    const std::string reason = why_not(options, variant);
    if (!reason.empty()) notice(join_text(variant.name, " is left out: ", reason));
  }
}

std::unique_ptr<Experiment> read_data(const ComparisonOptions& options, const KeptInputs& kept, ComparisonHost& host) {
  std::unique_ptr<Experiment> experiment;
  kept.reading(
      [&] { host.show_reading([&](const Progress& progress) { experiment = open_experiment(options, progress); }); });
  return experiment;
}

void find_matching_steps(const Experiment& experiment, c10::Device device, ComparisonOptions* options) {
  if (options->match != Match::kTime || !options->scheme_steps.empty()) return;
  match_time(
      trainable_variants(*options),
      [&](const ComparisonOptions& cell) { return seconds_per_step(experiment, cell, device); }, options);
}

double measured_seconds(const std::vector<CellPlan>& plans, const Experiment& experiment, const fs::path& home,
                        c10::Device device, ComparisonHost& host) {
  std::optional<double> start;
  return estimated_seconds(plans, home, [&](const ComparisonOptions& cell) {
    host.check_interrupted();
    if (!start) start = host.start_seconds();
    return measure_cell(experiment, cell, device, *start);
  });
}

// Says that models learn from a teacher, because a step with a teacher takes longer than one without.
std::string teacher_sentence(const DistillationOptions& distillation) {
  const Distillation& how = distillation.learning.scores;
  const double hidden = distillation.learning.hidden;
  if (!distillation.teaches()) return "";
  return join_text("Every model also learns from ", distillation.teacher, " (share ", how.share, ", T ",
                   how.temperature, hidden > 0 ? join_text(", hidden states ", hidden) : "",
                   "); training speed and peak memory include it.");
}

class PreparedTraining : public PreparedComparison {
 public:
  PreparedTraining(ComparisonCall& call, const KeptInputs& kept, ComparisonHost& host) : home_(call.out) {
    const c10::Device device = host.start();
    warn_if_no_faster(call.options.train.precision, device);
    call.options.train.precision = resolve_precision(call.options.train.precision, device);
    explain_left_out(call.options);
    experiment_ = read_data(call.options, kept, host);
    subject_ = experiment_->subject();
    subject_.add_sentence(gate_sentence(planned_gates(call.options)));
    subject_.add_sentence(teacher_sentence(call.options.own<TextOptions>().distillation));
    find_matching_steps(*experiment_, device, &call.options);
    options_ = call.options;
    first_ = plan_cells(options_, *experiment_);
    forecast_ = with_added_seeds({.data = subject_.data,
                                  .models = first_.size(),
                                  .seconds = measured_seconds(first_, *experiment_, finished_home(call), device, host)},
                                 options_);
  }

  const Subject& subject() const override { return subject_; }
  const Forecast& forecast() const override { return forecast_; }
  std::vector<Variant> variants() const override { return chosen_variants(options_); }
  std::vector<CellPlan> cells(const ComparisonOptions& options) const override {
    std::vector<CellPlan> cells = plan_cells(options, *experiment_);
    note_data(&cells);
    for (CellPlan& cell : cells) experiment_->share(home_, &cell.options);
    return cells;
  }
  std::string match() const override { return match_name(options_.match); }
  void check_room(const fs::path& home) const override { check_disk(first_, *experiment_, home); }
  void check_finished(const ComparisonCall& call) const override {
    if (call.options.match == Match::kParameters) check_same_widths(first_, *experiment_, call.out);
    check_same_models(first_, *experiment_, call.out);
  }

 private:
  // Notes in each plan the data that its cell reads: that of its own tokenizer where embeddings are compared.
  void note_data(std::vector<CellPlan>* cells) const {
    const auto* several = dynamic_cast<const SeveralExperiments*>(experiment_.get());
    const std::string& teacher = options_.own<TextOptions>().distillation.teacher;
    if (!teacher_weights_) {
      teacher_weights_ = teacher.empty() ? "" : weights_fingerprint(find_checkpoint(teacher));
    }
    for (CellPlan& cell : *cells) {
      std::string data = subject_.fingerprint;
      if (several != nullptr) {
        const TokenizerKind kind = cell.options.own<TextOptions>().tokenizer.kind;
        if (!fingerprints_.contains(kind)) fingerprints_[kind] = several->fingerprint(cell.options);
        data = fingerprints_[kind];
      }
      if (!data.empty()) cell.data[kWholeData] = data;
      if (!teacher_weights_->empty()) cell.data[kTeacherWeights] = *teacher_weights_;
    }
  }

  fs::path home_;
  ComparisonOptions options_;
  std::unique_ptr<Experiment> experiment_;
  Subject subject_;
  std::vector<CellPlan> first_;  // the cells of the first seeds
  Forecast forecast_;
  // Seeds are added until a question is decided, so fingerprints of files are computed once.
  mutable std::optional<std::string> teacher_weights_;         // a fingerprint; "" without a teacher
  mutable std::map<TokenizerKind, std::string> fingerprints_;  // of the data, as each tokenizer cuts it
};

Outline outline_of(const ComparisonOptions& options) {
  Outline outline{.heading = options.variants.empty() ? "scheme" : "variant", .models = {}, .sentence = {}};
  for (const Variant& variant : chosen_variants(options)) {
    const std::string reason = why_not(options, variant);
    outline.models.push_back({.name = variant.name, .left_out = reason});
    if (reason.empty()) {
      outline.models.back().options = task_family(options.task).likely_model(with_variant(options, variant));
    }
  }
  outline.sentence =
      join_text(options.train.steps, " steps each, ", plural(static_cast<size_t>(options.seeds), "seed"));
  const size_t settings = sweep_settings(options).size();
  if (settings > 1) outline.sentence += join_text(", ", settings, " settings");
  return outline;
}

class TrainedMethod : public ComparisonMethod {
 public:
  std::string unit(const ComparisonOptions& options) const override { return task_family(options.task).unit() + "/s"; }
  int64_t accumulation(const ComparisonOptions& options) const override { return options.train.accumulation; }
  void check(const ComparisonOptions& options) const override { check_references(options, chosen_variants(options)); }
  std::vector<Outline> outlines(const ComparisonOptions& options) const override { return {outline_of(options)}; }
  bool has_data(const ComparisonOptions& options) const override {
    return !task_family(options.task).learns_from_text() || !options.own<TextOptions>().data.text.empty();
  }
  Forecast forecast(ComparisonCall call, ComparisonHost& host) const override {
    const KeptInputs kept(call.out, &call.options.own<TextOptions>().data);
    return PreparedTraining(call, kept, host).forecast();
  }
  std::unique_ptr<PreparedComparison> prepare(ComparisonCall& call, KeptInputs& kept,
                                              ComparisonHost& host) const override {
    return std::make_unique<PreparedTraining>(call, kept, host);
  }
  Cell run_cell(const CellPlan& plan, const CellPlace& place, c10::Device device, Observer& observer,
                const std::function<bool()>& stop_requested) const override {
    return headshare::run_cell(plan, *open_experiment(plan.options), place, device, observer, stop_requested);
  }
};

}  // namespace

const ComparisonMethod& trained_method() {
  static const TrainedMethod method;
  return method;
}

}  // namespace headshare
