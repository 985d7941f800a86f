// These functions run one cell of a comparison: they train its model, score it and measure what it costs.
#pragma once

#include "headshare/compare/grid.h"

namespace headshare {

// Works in cells/<plan.directory()> below `home`, goes on from a checkpoint that is there, and leaves
// cell.json. Throws Error when the training fails, Interrupted when asked to stop.
Cell run_cell(const CellPlan& plan, const Experiment& experiment, const fs::path& home, c10::Device device,
              Observer& observer, const std::function<bool()>& stop_requested);

// Returns the cell as an earlier call left it; nothing when it is not finished. Throws Error when it is damaged.
std::optional<Cell> finished_cell(const fs::path& home, const CellKey& key);

fs::path cell_home(const fs::path& home, const CellKey& key);

}  // namespace headshare
