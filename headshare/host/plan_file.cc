#include "headshare/host/plan_file.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/files/list_folder.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_reader.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/strings/valid_utf8.h"
#include "headshare/compare/comparison_home.h"
#include "headshare/host/machine.h"
#include "headshare/host/new_id.h"

namespace headshare {
namespace {

constexpr const char* kFormat = "headshare plan";
constexpr int64_t kPlanFormatVersion = 1;
constexpr uint64_t kMostPlanBytes = 1 << 24;
constexpr const char* kDamaged = "it is damaged; write it again with: headshare compare --resume --plan DIR";

fs::path plan_of_cell(const fs::path& home, const std::string& cell) { return plan_folder(home) / (cell + ".json"); }

std::string earlier_id(const fs::path& home) {
  try {
    return read_plan(home).id;
  } catch (const Error&) {
    return new_id();  // of an earlier version, or damaged: nobody works on it
  }
}

nlohmann::ordered_json to_json(const PlanFile& plan) {
  RuntimeOptions runtime = plan.runtime;
  return {{"format", kFormat},
          {"format_version", kPlanFormatVersion},
          {"id", plan.id},
          {"program",
           {{"headshare", plan.program.headshare}, {"commit", plan.program.commit}, {"torch", plan.program.torch}}},
          {"directory", plan.directory.string()},
          {"runtime", to_json(fields(runtime))},
          {"cells", plan.cells}};
}

bool is_plan_of_cell(const fs::path& file) {
  try {
    plan_from_json(read_json_file(file, kMostPlanBytes, kDamaged), file.string());
    return true;
  } catch (const Error&) {
    return false;  // somebody put it here
  }
}

// Removes the plans of cells that are not among those of `plan`. Leases stay.
void remove_others(const fs::path& home, const PlanFile& plan) {
  std::vector<fs::path> others;
  std::error_code ignored;
  for (const fs::path& path : list_folder(plan_folder(home), ignored)) {
    const bool planned = path.filename() == kPlanFile ||
                         std::find(plan.cells.begin(), plan.cells.end(), path.stem().string()) != plan.cells.end();
    if (path.extension() == ".json" && !planned && is_plan_of_cell(path)) others.push_back(path);
  }
  for (const fs::path& one : others) fs::remove(one, ignored);
}

}  // namespace

Program this_program() {
  const Machine machine = describe_machine();
  return {.headshare = machine.headshare, .commit = machine.commit, .torch = machine.torch};
}

std::string described(const Program& program) {
  return join_text("headshare ", program.headshare, " (commit ", program.commit, ", torch ", program.torch, ")");
}

fs::path plan_folder(const fs::path& home) { return home / kPlanFolder; }

PlanFile write_plan(const fs::path& home, const std::vector<CellPlan>& plans, const RuntimeOptions& runtime,
                    bool goes_on) {
  const std::string here = fs::current_path().string();
  HS_CHECK(valid_utf8_prefix(here) == here.size(), "the name of the current directory, ", here, ", is not UTF-8, and ",
           (plan_folder(home) / kPlanFile).string(), " cannot hold it; start the comparison in another directory");
  PlanFile plan{.id = goes_on ? earlier_id(home) : new_id(),
                .program = this_program(),
                .directory = here,
                .runtime = runtime,
                .cells = {}};
  make_directories(plan_folder(home));
  remove_partials(plan_folder(home), {"*.json"});
  for (const CellPlan& cell : plans) {
    plan.cells.push_back(cell.directory());
    write_file(plan_of_cell(home, cell.directory()), json_text(to_json(cell), 2) + "\n");
  }
  write_file(plan_folder(home) / kPlanFile, json_text(to_json(plan), 1) + "\n");  // last: it names whole files
  remove_others(home, plan);
  return plan;
}

PlanFile read_plan(const fs::path& home) {
  const fs::path file = plan_folder(home) / kPlanFile;
  HS_CHECK(path_exists(file), home.string(), " holds no plan of a comparison (there is no ", file.string(),
           "); write one with: headshare compare ... --plan DIR, and look whether this machine shares DIR");
  const nlohmann::json object = read_json_file(file, kMostPlanBytes, kDamaged);
  const JsonReader read(object, file.string());
  HS_CHECK(read.text("format") == kFormat, file.string(), ": \"format\" is not \"", kFormat, "\"; ", kDamaged);
  HS_CHECK(read.integer("format_version") == kPlanFormatVersion, file.string(), " has format version ",
           read.integer("format_version"), ", and this headshare reads ", kPlanFormatVersion,
           ": use the headshare that wrote it, or plan again");
  const JsonReader program(read.object("program"), read.name("program"));
  PlanFile plan{.id = read.text("id"),
                .program = {.headshare = program.text("headshare"),
                            .commit = program.text("commit"),
                            .torch = program.text("torch")},
                .directory = read.text("directory"),
                .runtime = {},
                .cells = read.texts("cells")};
  Fields runtime = fields(plan.runtime);
  from_json(runtime, read.object("runtime"), read.name("runtime"));
  for (const std::string& cell : plan.cells) {
    HS_CHECK(!cell.empty() && cell.find('/') == std::string::npos && cell.front() != '.', file.string(),
             ": \"cells\" holds ", brief_text(cell), ", which is no name of a folder; ", kDamaged);
  }
  return plan;
}

bool is_withdrawn(const fs::path& home, const std::string& id) {
  const fs::path file = plan_folder(home) / kPlanFile;
  try {
    if (!path_exists(file)) return true;
    const nlohmann::json object = read_json_file(file, kMostPlanBytes, kDamaged);
    return JsonReader(object, file.string()).text("id") != id;  // also of a format that this program cannot read
  } catch (const Error&) {
    return false;
  }
}

CellPlan read_cell_plan(const fs::path& home, const std::string& cell) {
  const fs::path file = plan_of_cell(home, cell);
  CellPlan plan = plan_from_json(read_json_file(file, kMostPlanBytes, kDamaged), file.string());
  HS_CHECK(plan.directory() == cell, file.string(), " is the plan of ", brief_text(plan.directory()), ", not of ", cell,
           "; ", kDamaged);
  return plan;
}

}  // namespace headshare
