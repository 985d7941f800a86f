#include "headshare/compare/compare_trained.h"

#include "headshare/base/directory_lock.h"
#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/compare/comparison.h"
#include "headshare/compare/comparison_home.h"
#include "headshare/compare/measure.h"
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
  return estimated_seconds(plans, home, [&](const ComparisonOptions& cell) {
    host.check_interrupted();
    return seconds_per_step(experiment, cell, device);
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

}  // namespace

Results compare_trained(ComparisonCall& call, ComparisonHost& host, const std::function<void()>& beginning) {
  const DirectoryLock lock(call.out);
  call.out = lock.path();
  check_directory(call);
  const c10::Device device = host.start();
  warn_if_no_faster(call.options.train.precision, device);
  call.options.train.precision = resolve_precision(call.options.train.precision, device);
  explain_left_out(call.options);
  KeptInputs kept(call.out, &call.options.language.data);
  const std::unique_ptr<Experiment> experiment = read_data(call.options, kept, host);
  const Subject subject = experiment->subject();
  find_matching_steps(*experiment, device, &call.options);
  std::vector<CellPlan> plans = plan_cells(call.options, *experiment);
  check_time(call, plans.size(), measured_seconds(plans, *experiment, call.out, device, host));
  check_disk(plans, *experiment, call.out);
  if (call.resume) {
    check_same(call, plans, *experiment, subject);
    go_on(call, kept, host);
  } else {
    if (beginning) beginning();
    begin_anew(call, kept, host);  // only now: nothing of an earlier comparison is touched by a mistake
  }

  ComparisonOptions shared = call.options;
  experiment->share(call.out, &shared);
  for (CellPlan& plan : plans) plan.options.language.tokenizer_path = shared.language.tokenizer_path;
  Results results = begin_results(call, subject, chosen_variants(call.options), host);
  run_cells(call, plans, host, &results);
  return results;
}

}  // namespace headshare
