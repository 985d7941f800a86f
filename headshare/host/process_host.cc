#include "headshare/host/process_host.h"

#include <algorithm>
#include <chrono>

#include "headshare/base/error.h"
#include "headshare/base/proc.h"
#include "headshare/base/strings/format.h"
#include "headshare/compare/comparison_home.h"
#include "headshare/host/child_process.h"
#include "headshare/host/machine.h"
#include "headshare/host/resolved_file.h"
#include "headshare/report/exports/report_files.h"

namespace headshare {
namespace {

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

// Returns the threads that an earlier call planned, for its models or for their encoders; nothing without such a plan.
std::optional<int64_t> planned_threads(const fs::path& out) {
  for (const fs::path& home : {out, out / kEncoders}) {
    try {
      return read_plan(home).runtime.threads;
    } catch (const Error&) {  // of an earlier version, or damaged
      continue;
    }
  }
  return std::nullopt;
}

// Where models are dealt to devices, the devices are named one by one and the engine is this machine's.
void check_devices(const CompareCommand& command) {
  if (command.devices.empty()) return;
  for (const std::string& one : command.devices) {
    HS_CHECK(parse_device("--devices", one).kind != DeviceChoice::Kind::kAuto, "--devices ", list_text(command.devices),
             ": name each device, such as cuda:0,cuda:1");
  }
  HS_CHECK(command.runtime.device.kind == DeviceChoice::Kind::kAuto,
           "--devices and --device say both where models are trained; leave one of them out");
  HS_CHECK(engine_record(command.workers).shares_cores,
           "--devices deals models to devices of this machine, and --workers ", command.workers,
           " runs them elsewhere, where each finds its own; leave --devices out");
}

}  // namespace

ProcessHost::ProcessHost(HostOptions options, const CompareCommand& command)
    : options_(std::move(options)), command_(command) {
  check_devices(command_);
  HS_CHECK(!options_.program.empty(),
           "a comparison trains its models in processes: set HostOptions::program to the "
           "path of a headshare program");
}

// Where several cells run on this machine at a time, they share its cores. A half-trained cell goes on with the threads
// that it began with, whatever machine or engine goes on.
RuntimeOptions ProcessHost::runtime() const {
  RuntimeOptions runtime = command_.runtime;
  const auto at_once = static_cast<int64_t>(cells_at_once(command_.engine()));  // checks the options of any engine
  const bool shared = engine_record(command_.workers).shares_cores;
  if (!runtime.threads && command_.resume) runtime.threads = planned_threads(command_.out);
  if (!runtime.threads && shared && at_once > 1) runtime.threads = std::max<int64_t>(1, threads_in_use() / at_once);
  return runtime;
}

c10::Device ProcessHost::start() {
  command_.runtime = runtime();
  RuntimeOptions here = command_.runtime;  // what is measured before is measured on the first device
  if (!command_.devices.empty()) here.device = parse_device("devices", command_.devices.front());
  const c10::Device device = start_runtime(here);
  const CudaFacts facts = cuda_facts();
  for (const std::string& one : command_.devices) resolve_device(parse_device("devices", one), facts, 0);
  return device;
}

double ProcessHost::start_seconds() {
  const auto began = std::chrono::steady_clock::now();
  ChildProcess(options_.program, {"--version"}, [](const std::string&) {}).wait();
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

EngineCall ProcessHost::engine_call(const ComparisonCall& call, const PlanFile& plan, size_t open) const {
  const double all = call.forecast.seconds * static_cast<double>(call.forecast.at_once);
  return {.program = options_.program,
          .home = fs::absolute(call.out).lexically_normal(),
          .plan_id = plan.id,
          .cells = plan.cells,
          .threads = threads_in_use(),
          .gpu = command_.runtime.device.may_be_cuda() && cuda_devices() > 0,
          .devices = command_.devices,
          .seconds_per_cell = all / static_cast<double>(std::max<size_t>(open, 1)),
          // The forecast trained some of the models here for a moment.
          .bytes_per_cell = static_cast<double>(peak_memory_bytes()),
          .on_note = {}};
}

void ProcessHost::run_cells(const ComparisonCall& call, const std::vector<CellPlan>& plans, Results* results) {
  const std::unique_ptr<GridObserver> watching = observer();
  RuntimeOptions runtime = command_.runtime;
  runtime.threads = threads_in_use();  // the last bits of a result belong to a number of threads
  const bool goes_on = call.resume || !planned_.insert(call.out).second;  // more seeds are added, too
  const PlanFile plan = write_plan(call.out, plans, runtime, goes_on);
  ReportWriter writer(*watching, call);
  Gathering gathering(plans, call.out, writer, results);
  if (gathering.open() == 0) return;
  if (!command_.plan.empty()) {
    Planned planned{.home = call.out, .id = plan.id, .cells = plans.size(), .unfinished = {}};
    for (size_t i = 0; i < plans.size(); ++i) {
      if (gathering.is_open(i)) planned.unfinished.push_back(i);
    }
    throw planned;
  }
  EngineCall engine = engine_call(call, plan, gathering.open());
  engine.on_note = [&](size_t cell, const std::string& note) { watching->on_note(plans[cell], note); };
  const std::unique_ptr<Engine> made = make_engine(command_.engine(), engine);
  run_open_cells({.home = call.out,
                  .gathering = gathering,
                  .engine = *made,
                  .observer = *watching,
                  .stop_requested = options_.stop_requested});
}

}  // namespace headshare
