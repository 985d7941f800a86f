// A worker runs one cell of a planned comparison, on any machine that shares the comparison's directory. Any number of
// workers may be called for one cell, at the same time or again: one of them does the work, and its result appears
// whole.
#pragma once

#include "headshare/host/lease.h"
#include "headshare/host/plan_file.h"
#include "headshare/train/observer.h"
#include "headshare/train/reducer.h"

namespace headshare {

struct CellCall {
  fs::path home;             // the comparison's directory
  int64_t index = 0;         // of the cell in the plan
  std::string plan_id = {};  // the id that the plan must have: another one says that the folder is not shared; "": any
  std::string job = {};      // the name that an engine gave this work, for people
  bool take_over = false;    // an engine knows that whoever owns the cell is lost, and does not wait for its beats
  bool wait = false;         // waits while another process works on the cell, or on one whose weights it needs
  std::optional<DeviceChoice> device = {};  // in place of the plan's
  Reducer& processes = one_process();       // that train the cell together; process 0 owns and publishes it
  LeaseTiming timing = lease_timing();
};

struct CellEnd {
  enum class Kind {
    kDone,   // the cell is finished, now or before
    kLater,  // another process works on it, or it waits for another cell: try again
  };

  Kind kind = Kind::kDone;
  std::string sentence;  // for people
  bool in_vain = false;  // nobody works on what it waits for
};

// Does what `headshare cell DIR INDEX` does. The lease says how far the cell is, and why it failed. Throws Error where
// the cell fails or the call is wrong, and Interrupted when asked to stop, after its state is saved and the lease given
// back.
CellEnd run_planned_cell(const CellCall& call, Observer& observer, const std::function<bool()>& stop_requested);

// Makes the system end this process when the one that started it ends, for whatever reason.
void die_with_parent();

// Returns the machine that this process computes on.
CellMachine this_machine(c10::Device device);

}  // namespace headshare
