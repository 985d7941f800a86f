// These functions let several processes of one run agree. Each is called by all of them, in the same order; in a run of
// one process they change nothing.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "headshare/train/reducer.h"

namespace headshare {

// Process 0 writes the files, reports and decides.
inline bool leads(const Reducer& processes) { return processes.rank() == 0; }

// Tells whether one of the processes says yes.
bool any_process(Reducer& processes, bool here);

// Returns the number of process `from`.
double number_of(Reducer& processes, double here, int64_t from = 0);

// Returns the text of process `from`.
std::string text_of(Reducer& processes, const std::string& text, int64_t from = 0);

// Lets process 0 do `work`, and the others wait for its end. The work calls `beat` now and then, so that work that
// takes longer than processes wait for each other is not taken for a lost process. What it throws ends all: Interrupted
// in all of them, or an Error with the same sentence.
using Beat = std::function<void()>;
inline constexpr std::chrono::seconds kBetweenBeats{30};  // a beat that comes sooner says nothing
void on_process_0(Reducer& processes, const std::function<void(const Beat& beat)>& work);

// Lets each process do its own `work`, and all wait until it is done in each. The work calls `beat` as above. What it
// throws ends its process; the others lose it.
void in_all_processes(Reducer& processes, const std::function<void(const Beat& beat)>& work,
                      std::chrono::seconds between_beats = kBetweenBeats);

// These describe what a process was started with, a name with its value each: "--batch-size", "32".
using Facts = std::vector<std::pair<std::string, std::string>>;

// Throws Error in all processes where one has other facts than process 0: with the first that differs, as both have it,
// and the process with its `place` ("host b").
void check_alike(Reducer& processes, const Facts& facts, const std::string& place);

// Deals things of these sizes to `processes`: the largest first, each to the process that has least. Returns for each
// thing the process that gets it. The same sizes are dealt alike.
std::vector<int64_t> deal_by_size(const std::vector<int64_t>& sizes, int64_t processes);

}  // namespace headshare
