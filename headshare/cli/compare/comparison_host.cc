#include "headshare/cli/compare/comparison_host.h"

#include <chrono>

#include "headshare/cli/compare/cell_process.h"
#include "headshare/cli/inputs/model_input.h"
#include "headshare/cli/machine.h"
#include "headshare/cli/tables/grid_progress.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/compare/cell_run.h"

namespace headshare {
namespace {

Words child_words(const RuntimeOptions& runtime, const fs::path& home, const CellPlan& plan) {
  Words words = {"train-cell", home.string(), plan.directory()};
  RuntimeOptions copy = runtime;
  for (const Field& one : fields(copy)) {
    const std::string value = field_text(one.value(), one.name);
    if (value != "auto") words.insert(words.end(), {"--" + one.name, value});
  }
  return words;
}

// Runs a cell in a process of its own.
CellRunner process_runner(const RuntimeOptions& runtime, const fs::path& home, GridProgress& progress) {
  return [&runtime, home, &progress](const CellPlan& plan) {
    make_directories(cell_home(home, plan.key));
    write_file(cell_home(home, plan.key) / "plan.json", to_json(plan).dump(2) + "\n");
    const CellProcess process{.words = child_words(runtime, home, plan),
                              .observer = &progress,
                              .on_note = [&progress](const std::string& note) { progress.on_note(note); },
                              .stop_requested = stop_requested};
    return process.run();
  };
}

}  // namespace

c10::Device CommandLineHost::start() { return start_runtime(command_.runtime); }

double CommandLineHost::start_seconds() {
  const auto began = std::chrono::steady_clock::now();
  Observer nobody;
  const CellProcess process{.words = {"--version"},
                            .observer = &nobody,
                            .on_note = [](const std::string&) {},
                            .stop_requested = [] { return false; }};
  process.run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

nlohmann::ordered_json CommandLineHost::environment() { return describe_machine(); }

void CommandLineHost::check_interrupted() { headshare::check_interrupted(); }

void CommandLineHost::show_reading(const std::function<void(const Progress& progress)>& read) {
  ProgressLine line("text");
  read(headshare::show_reading(line));
  line.hide();
}

ComparisonCall CommandLineHost::begun(const fs::path& home) {
  return resumed_command({"--resume", "--out", home.string()}, home.string()).call("");
}

void CommandLineHost::write_resolved(const ComparisonCall& call) {
  CompareCommand lasting = command_;
  lasting.comparison = call.options;
  headshare::write_resolved(lasting, call.out);
}

void CommandLineHost::run_cells(const ComparisonCall& call, const std::vector<CellPlan>& plans, Results* results) {
  GridProgress progress(call.out, {.latex = call.latex});
  run_comparison(plans, call.out, process_runner(command_.runtime, call.out, progress), progress, results);
  progress.finish();
}

}  // namespace headshare
