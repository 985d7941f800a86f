// headshare train-cell: one cell of a comparison. Not for people: `compare` starts it.
#include "headshare/base/json_input.h"
#include "headshare/cli/arguments/exit_codes.h"
#include "headshare/cli/arguments/runtime_options.h"
#include "headshare/cli/compare/cell_process.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/compare/cell_run.h"
#include "headshare/compare/tuned_cell.h"

namespace headshare {
namespace {

constexpr uint64_t kMostPlanBytes = 1 << 24;

CellPlan read_plan(const fs::path& path) { return plan_from_json(read_json_file(path, kMostPlanBytes), path.string()); }

}  // namespace

int run_train_cell(const Words& words) {
  std::string home;
  std::string name;
  RuntimeOptions runtime;
  Arguments arguments("train-cell", "Trains one cell of a comparison; `headshare compare` starts it.");
  arguments.required("DIR", "the comparison", &home);
  arguments.required("CELL", "the cell's directory below DIR/cells", &name);
  arguments.group("Computing", fields(runtime));
  if (!arguments.parse(words)) return kOk;
  die_with_parent();
  catch_interrupts();
  const c10::Device device = start_runtime(runtime);
  const CellPlan plan = read_plan(fs::path(home) / "cells" / name / "plan.json");
  ReportingObserver observer;
  if (fine_tunes(plan.options)) {
    run_tuned_cell(plan, home, device, observer, stop_requested);
  } else {
    run_cell(plan, *open_experiment(plan.options), home, device, observer, stop_requested);
  }
  return kOk;
}

}  // namespace headshare
