// torchrun launches several processes of one call, and launches them again when one has failed. The Python package
// makes them a group (python/headshare/_group.py), and the program then finds its part here.
#pragma once

#include <c10/core/Device.h>

#include <set>
#include <string>

#include "headshare/base/files/file.h"
#include "headshare/host/option_groups.h"
#include "headshare/train/processes.h"

namespace headshare {

// Returns the processes of this call: those that join_group() found, else this one alone.
Reducer& run_processes();

// Joins the process group of that name, which must outlive the program's work.
void join_group(const std::string& name);

// Names the options that each process has for itself: they may differ between machines, and change no number but by
// rounding.
const std::set<std::string>& options_of_a_process();

// These throw Error, in all processes alike, where a process differs from process 0. The first two come before any
// other exchange, because processes that do different things would wait for each other: another verb; another version,
// or another value of an option. `more` says what else must be equal.
void check_same_verb(Reducer& processes, const std::string& verb);
void check_launched_alike(Reducer& processes, const OptionGroups& options, const Facts& more = {});
// Processes compute on another kind of device.
void check_same_device(Reducer& processes, c10::Device device);
// Processes learn from a teacher with other weights.
void check_same_teacher(Reducer& processes, const fs::path& checkpoint);
// Processes read other data.
void check_same_data(Reducer& processes, const std::string& data);

// Throws Error where a step has fewer micro-batches than there are processes. A notice says where they do not come out
// even.
void check_micro_batches(const Reducer& processes, int64_t accumulation);

// Notes in the directory of a run which launch began it; does nothing without a launch.
void note_launch(const fs::path& out);

// Tells whether torchrun has started the processes again since this launch began the run in `out`: the call then goes
// on with the run. All processes ask together.
bool goes_on_after_restart(Reducer& processes, const fs::path& out);

// Lets each of several processes keep the moments of some parameters.
Field shard_field(bool* target);

// Says why that option changes nothing in a call of one process.
inline constexpr const char* kNoShards =
    "deals the optimizer's moments to the processes of a run, and there is one: start several with torchrun";

}  // namespace headshare
