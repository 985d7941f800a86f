#include "headshare/host/compare_command.h"

#include <algorithm>
#include <iterator>

#include "headshare/base/error.h"
#include "headshare/base/files/placeholder.h"
#include "headshare/host/engine.h"
#include "headshare/host/task_paths.h"

namespace headshare {
namespace {

std::string workers_help() {
  std::string help = "where models are trained, and how many at a time";
  for (const EngineRecord& one : engine_records()) help += "; " + one.help;
  return help;
}

Fields call_fields(CompareCommand& c) {
  return {
      naming_directory(
          field("out", &c.out, "directory for results.json, report.html and the models", {.aliases = {"output-dir"}})),
      field("resume", &c.resume, "go on with the comparison in --out; finished models are not trained again"),
      field("overwrite", &c.overwrite, "delete the comparison in --out first"),
      field("dry-run", &c.dry_run, "print what would be trained and how long it takes; train nothing"),
      field("workers", &c.workers, workers_help()),
      field(
          "devices", &c.devices,
          "deal the models to these devices of this machine, such as cuda:0,cuda:1; as many are trained at a time, or "
          "local:N, N of them"),
      field("plan", &c.plan,
            "check and prepare the comparison in this directory, write the plans of its models, and train nothing: "
            "`headshare cell` trains each, on any machine that shares the directory; with --resume plan what comes "
            "next"),
      field("beyond-a-day", &c.beyond_a_day, "start even what is estimated to take longer than a day"),
      field("json", &c.json,
            "print results.json instead of the table; with --dry-run the number of models and the seconds"),
      field("latex", &c.latex, "also write the table in LaTeX, table.tex"),
  };
}

}  // namespace

OptionGroups CompareCommand::groups() {
  OptionGroups made = {option_group("Comparison", call_fields(*this))};
  // Each family's own options stand together, below what all have.
  Fields shared = fields(comparison);
  OptionGroups own;
  for (const TaskFamily* family : task_families()) {
    Fields list = family->fields(comparison);
    std::erase_if(shared, [&](const Field& one) { return find_field(list, one.name) != nullptr; });
    if (!list.empty()) own.push_back(option_group(family->heading(), std::move(list)));
  }
  made.push_back(option_group("What is trained", std::move(shared)));
  std::move(own.begin(), own.end(), std::back_inserter(made));
  made.push_back(option_group("Computing", fields(runtime)));
  return made;
}

void CompareCommand::forget_call() {
  overwrite = resume = json = latex = false;
  workers = CompareCommand().workers;  // any engine may go on
  devices.clear();
  plan.clear();
  out = CompareCommand().out;  // where it went would stand in the way of repeating it
}

std::string CompareCommand::engine() const {
  const bool more = devices.size() > 1 && workers == CompareCommand().workers;
  return more ? join_text("local:", devices.size()) : workers;
}

void CompareCommand::make_paths_whole() { headshare::make_paths_whole(&comparison); }

ComparisonCall CompareCommand::call(const std::string& line) const {
  return {.out = out,
          .resume = resume,
          .overwrite = overwrite,
          .beyond_a_day = beyond_a_day,
          .adds = adds,
          .latex = latex,
          .at_once = cells_at_once(engine()),
          .forecast = {},
          .line = line,
          .options = comparison};
}

}  // namespace headshare
