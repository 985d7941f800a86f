// headshare cell runs one cell of a comparison that `headshare compare` planned.
#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/cli/tables/cell_progress.h"
#include "headshare/cli/terminal/exit_codes.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/host/cell_worker.h"
#include "headshare/host/launch.h"

namespace headshare {
namespace {

struct CellCommand {
  std::string home;
  std::string index;
  std::string plan_id;
  std::string job;
  bool take_over = false;
  bool wait = false;
  bool quiet = false;
  RuntimeOptions runtime;

  Fields fields() {
    Fields list = {
        field("plan-id", &plan_id, "refuse a directory that holds another plan: it is not the shared one"),
        field("job", &job, "a name for this work that messages show, such as a scheduler's number"),
        field("take-over", &take_over,
              "do not wait for the signs of life of whoever worked on the model before: a scheduler knows that it is "
              "lost"),
        field("wait", &wait, "wait while another process trains the model, or one whose weights it needs"),
        field("quiet", &quiet, "show no progress"),
    };
    for (Field& one : headshare::fields(runtime)) {
      if (one.name == "device") list.push_back(std::move(one));
    }
    return list;
  }

  // Returns the options that several processes must share.
  OptionGroups shared_options() {
    Fields list = fields();
    std::erase_if(list, [](const Field& one) { return one.name == "job" || one.name == "quiet"; });
    return {option_group("Working", std::move(list))};
  }

  CellCall call() const {
    CellCall made{.home = fs::absolute(home),
                  .plan_id = plan_id,
                  .job = job,
                  .take_over = take_over,
                  .wait = wait,
                  .processes = run_processes()};
    field("INDEX", &made.index, "", {.min = 0}).parse(index);
    if (runtime.device.kind != DeviceChoice::Kind::kAuto) made.device = runtime.device;
    return made;
  }
};

}  // namespace

int run_cell(const Words& words) {
  CellCommand command;
  Arguments arguments("cell", "Trains one model of a comparison that `headshare compare --plan DIR` planned.");
  arguments.required("DIR", "the comparison, on a file system that all machines share", &command.home);
  arguments.required("INDEX", "which model, from 0", &command.index);
  arguments.group("Working", command.fields());
  arguments.example("cell comparison 3", "the fourth model of the plan");
  arguments.example("cell comparison 3 --job \"$SLURM_JOB_ID\" --quiet", "the same from a scheduler's job");
  arguments.note(
      "Any number of machines may be called for any model, at the same time or again: one of them trains it. Exit "
      "codes: 0 the model is finished, now or before; 75 somebody works on it, or it waits for another model: try "
      "again "
      "later; 1 it failed; 130 it was stopped (Ctrl-C, SIGTERM), and the next call goes on. The process ends when the "
      "one that started it ends.");
  arguments.note("`headshare compare --resume --out DIR` gathers what all models found, and trains what is left.");
  if (!arguments.parse(words)) return kOk;
  check_launched_alike(run_processes(), command.shared_options(), {{"INDEX", command.index}});
  die_with_parent();
  catch_interrupts();
  const CellCall call = as_usage([&] { return command.call(); });
  // Relative paths in the plan are those of the call that planned.
  std::error_code elsewhere;
  fs::current_path(read_plan(call.home).directory, elsewhere);
  Observer silent;
  CellProgressLine shown(command.index);
  Observer& observer = command.quiet || !leads(run_processes()) ? silent : shown;
  const CellEnd end = run_planned_cell(call, observer, stop_requested);
  if (!command.quiet || end.kind == CellEnd::Kind::kLater) notice(end.sentence);
  return end.kind == CellEnd::Kind::kDone ? kOk : kLater;
}

}  // namespace headshare
