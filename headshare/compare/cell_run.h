// These functions run one cell of a comparison: they train its model, score it and measure what it costs.
#pragma once

#include "headshare/base/error.h"
#include "headshare/compare/grid.h"

namespace headshare {

// A cell is worked on in this place.
struct CellPlace {
  fs::path home;                            // the comparison's directory, where other cells are found
  fs::path own;                             // the folder of this cell's work
  std::optional<CellMachine> machine = {};  // noted in the cell
  Reducer& processes = one_process();       // that train the cell together
};

// Works in place.own, goes on from a checkpoint that is there, and leaves cell.json. Processes other than 0 take part
// in the training, write nothing and return an empty cell; their observer hears nothing. Throws Error when the training
// fails or the data is not that of the plan, Interrupted when asked to stop.
Cell run_cell(const CellPlan& plan, const Experiment& experiment, const CellPlace& place, c10::Device device,
              Observer& observer, const std::function<bool()>& stop_requested);

// This machine reads other files than those of the plan: the cell itself has not failed.
class OtherData : public Error {
 public:
  using Error::Error;
};

// Throws OtherData where the plan names another fingerprint for the data `what`.
void check_planned_data(const CellPlan& plan, const std::string& what, const std::string& fingerprint);

// Throws OtherData where the plan names another fingerprint for the weights `what` than those of the checkpoint.
void check_planned_weights(const CellPlan& plan, const std::string& what, const fs::path& checkpoint);

// Finishes a cell in place.own: notes the machine, and writes cell.json.
void write_cell(const CellPlace& place, Cell* cell);

// A finished cell has its result in this file of its folder.
inline constexpr const char* kCellFile = "cell.json";

// Returns the folder that holds a cell once it is finished.
fs::path cell_home(const fs::path& home, const CellKey& key);

// Tells whether the cell is finished.
bool is_finished(const fs::path& home, const CellKey& key);

// Returns the cell as an earlier call left it; nothing when it is not finished. Throws Error when it is damaged.
std::optional<Cell> finished_cell(const fs::path& home, const CellKey& key);

}  // namespace headshare
