#include "headshare/compare/compare_trained.h"

#include "headshare/base/directory_lock.h"
#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/compare/cell_time.h"
#include "headshare/compare/comparison.h"
#include "headshare/compare/comparison_home.h"
#include "headshare/compare/measure.h"
#include "headshare/compare/until_decided.h"
#include "headshare/compare/variants.h"

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

// What finished models are taken over with.
void check_same(const ComparisonCall& call, const std::vector<CellPlan>& plans, const Experiment& experiment,
                const Subject& subject) {
  check_same_data(call.out, subject);
  if (call.options.match == Match::kParameters) check_same_widths(plans, experiment, call.out);
  check_same_variants(call.out, chosen_variants(call.options));
  check_same_models(plans, experiment, call.out);
}

// A step with a teacher takes more than one without, which readers of a table must know.
std::string teacher_sentence(const DistillationOptions& distillation) {
  const Distillation& how = distillation.learning.scores;
  const double hidden = distillation.learning.hidden;
  if (!distillation.teaches()) return "";
  return join_text("Every model also learns from ", distillation.teacher, " (share ", how.share, ", T ",
                   how.temperature, hidden > 0 ? join_text(", hidden states ", hidden) : "",
                   "); training speed and peak memory include it.");
}

// What is trained on what, found before anything is written.
struct Preparation {
  c10::Device device = c10::Device(c10::kCPU);
  std::unique_ptr<Experiment> experiment = {};
  Subject subject = {};
  std::vector<CellPlan> plans = {};  // of the first seeds
  Forecast forecast = {};
};

Preparation prepare(ComparisonCall& call, const KeptInputs& kept, ComparisonHost& host) {
  Preparation made{.device = host.start()};
  warn_if_no_faster(call.options.train.precision, made.device);
  call.options.train.precision = resolve_precision(call.options.train.precision, made.device);
  explain_left_out(call.options);
  made.experiment = read_data(call.options, kept, host);
  made.subject = made.experiment->subject();
  const std::string taught = teacher_sentence(call.options.language.distillation);
  if (!taught.empty()) made.subject.sentence += (made.subject.sentence.empty() ? "" : " ") + taught;
  find_matching_steps(*made.experiment, made.device, &call.options);
  made.plans = plan_cells(call.options, *made.experiment);
  made.forecast = with_added_seeds(
      {.data = made.subject.data,
       .models = made.plans.size(),
       .seconds = measured_seconds(made.plans, *made.experiment, finished_home(call), made.device, host)},
      call.options);
  return made;
}

}  // namespace

Forecast forecast_trained(ComparisonCall call, ComparisonHost& host) {
  const KeptInputs kept(call.out, &call.options.language.data);
  return prepare(call, kept, host).forecast;
}

Results compare_trained(ComparisonCall& call, ComparisonHost& host, const std::function<void()>& beginning) {
  const DirectoryLock lock(call.out);
  call.out = lock.path();
  check_directory(call);
  KeptInputs kept(call.out, &call.options.language.data);
  const Preparation made = prepare(call, kept, host);
  check_time(call, made.forecast);
  check_disk(made.plans, *made.experiment, call.out);
  if (call.resume) {
    check_same(call, made.plans, *made.experiment, made.subject);
    go_on(call, kept, host);
  } else {
    if (beginning) beginning();
    begin_anew(call, kept, host);  // only now: nothing of an earlier comparison is touched by a mistake
  }

  say_forecast(call, made.forecast);
  const auto plan = [&](const ComparisonOptions& options) {
    std::vector<CellPlan> cells = plan_cells(options, *made.experiment);
    for (CellPlan& cell : cells) made.experiment->share(call.out, &cell.options);
    return cells;
  };
  Results results = begin_results(call, made.subject, chosen_variants(call.options), host);
  run_until_decided(call, plan, host, &results);
  return results;
}

}  // namespace headshare
