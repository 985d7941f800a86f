// The plan of a comparison says which cells there are and how each is made. It stands apart from the work on them, in
// DIR/plan, where any machine that shares DIR finds it: plan.json lists the cells, NAME.json is the plan of one.
#pragma once

#include <string>
#include <vector>

#include "headshare/compare/grid.h"
#include "headshare/host/runtime_options.h"

namespace headshare {

// Numbers of different programs cannot stand in one table.
struct Program {
  std::string headshare;  // the version
  std::string commit;     // the commit that headshare was built from
  std::string torch;      // the version

  bool operator==(const Program&) const = default;
};

Program this_program();

// Returns "headshare 0.9.0 (commit 1a2b3c, torch 2.13.0)".
std::string described(const Program& program);

struct PlanFile {
  std::string id;  // of the comparison, as long as it is not begun anew: tells whether two folders are the same
  Program program;
  fs::path directory;              // relative paths in the plans are found from here
  RuntimeOptions runtime;          // of the processes that run the cells
  std::vector<std::string> cells;  // the names of their folders, in order
};

fs::path plan_folder(const fs::path& home);

// Writes the plan of a comparison. Where `goes_on`, the id is that of the plan before. The plans of cells that are no
// longer planned are removed.
PlanFile write_plan(const fs::path& home, const std::vector<CellPlan>& plans, const RuntimeOptions& runtime,
                    bool goes_on);

// Throws Error that says what to do where `home` holds no plan, or a damaged one.
PlanFile read_plan(const fs::path& home);
CellPlan read_cell_plan(const fs::path& home, const std::string& cell);

// Tells whether the comparison of that id is planned in `home` no more: it was begun anew, or deleted. A plan that
// cannot be read at the moment says nothing.
bool is_withdrawn(const fs::path& home, const std::string& id);

}  // namespace headshare
