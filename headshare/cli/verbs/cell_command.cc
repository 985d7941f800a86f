// headshare train-cell trains one cell of a comparison. It is not for people: `compare` starts it.
#include "headshare/cli/arguments/exit_codes.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/host/cell_process.h"

namespace headshare {

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
  ReportingObserver observer([](const std::string& line) {
    print_json(line);
    flush_output();
  });
  train_cell(home, name, device, observer, stop_requested);
  return kOk;
}

}  // namespace headshare
