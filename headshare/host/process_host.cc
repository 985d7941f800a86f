#include "headshare/host/process_host.h"

#include <chrono>

#include "headshare/base/error.h"
#include "headshare/compare/cell_run.h"
#include "headshare/host/cell_process.h"
#include "headshare/host/machine.h"
#include "headshare/host/resolved_file.h"
#include "headshare/report/exports/report_files.h"

namespace headshare {
namespace {

std::vector<std::string> child_words(const RuntimeOptions& runtime, const fs::path& home, const CellPlan& plan) {
  std::vector<std::string> words = {"train-cell", home.string(), plan.directory()};
  RuntimeOptions copy = runtime;
  for (const Field& one : fields(copy)) {
    const std::string value = field_text(one.value(), one.name);
    if (value != "auto") words.insert(words.end(), {"--" + one.name, value});
  }
  return words;
}

// A ReportWriter hands on what it hears of a grid to another observer, and writes the reports.
class ReportWriter : public ComparisonObserver {
 public:
  ReportWriter(ComparisonObserver& observer, const ComparisonCall& call) : observer_(observer), call_(call) {}

  void on_taken_over(size_t finished, size_t count) override { observer_.on_taken_over(finished, count); }
  void on_cell(const CellPlan& plan, int64_t number, int64_t count) override { observer_.on_cell(plan, number, count); }
  void on_failure(const CellPlan& plan, const std::string& reason) override { observer_.on_failure(plan, reason); }
  void on_results(const Results& results) override {
    write_reports(call_.out, results, {.latex = call_.latex});
    observer_.on_results(results);
  }

 private:
  ComparisonObserver& observer_;
  const ComparisonCall& call_;
};

}  // namespace

ProcessHost::ProcessHost(HostOptions options, const CompareCommand& command)
    : options_(std::move(options)), command_(command) {
  HS_CHECK(!options_.program.empty(),
           "a comparison trains its models in processes: set HostOptions::program to the "
           "path of a headshare program");
}

c10::Device ProcessHost::start() { return start_runtime(command_.runtime); }

double ProcessHost::start_seconds() {
  const auto began = std::chrono::steady_clock::now();
  Observer nobody;
  const CellProcess process{.program = options_.program,
                            .words = {"--version"},
                            .observer = &nobody,
                            .on_note = [](const std::string&) {},
                            .stop_requested = [] { return false; }};
  process.run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

nlohmann::ordered_json ProcessHost::environment() { return to_json(describe_machine()); }

void ProcessHost::check_interrupted() {
  if (options_.stop_requested()) throw Interrupted("stopped");
}

void ProcessHost::show_reading(const std::function<void(const Progress& progress)>& read) {
  read([this](const DataProgress&) { check_interrupted(); });
}

ComparisonCall ProcessHost::begun(const fs::path& home) {
  CompareCommand began;
  OptionGroups groups = began.groups();
  read_resolved(groups, CompareCommand::kVerb, home.string());
  began.make_paths_whole();
  began.resume = true;
  began.out = home.string();
  return began.call("");
}

void ProcessHost::write_resolved(const ComparisonCall& call) {
  CompareCommand lasting = command_;
  lasting.comparison = call.options;
  headshare::write_resolved(std::move(lasting), call.out);
}

void ProcessHost::run_cells(const ComparisonCall& call, const std::vector<CellPlan>& plans, Results* results) {
  const std::unique_ptr<GridObserver> watching = observer();
  const CellRunner in_a_process = [&](const CellPlan& plan) {
    const fs::path cell = cell_home(call.out, plan.key);
    make_directories(cell);
    write_file(cell / "plan.json", to_json(plan).dump(2) + "\n");
    const CellProcess process{.program = options_.program,
                              .words = child_words(command_.runtime, call.out, plan),
                              .observer = watching.get(),
                              .on_note = [&](const std::string& note) { watching->on_note(note); },
                              .stop_requested = options_.stop_requested};
    return process.run();
  };
  ReportWriter writer(*watching, call);
  run_comparison(plans, call.out, in_a_process, writer, results);
}

}  // namespace headshare
