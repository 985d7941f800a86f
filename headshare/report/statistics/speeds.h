// Decides how far measured speeds can be trusted: a machine that does something else meanwhile makes any of them wrong.
#pragma once

#include <string>
#include <vector>

#include "headshare/report/statistics/variant_rows.h"

namespace headshare {

// This says which speeds were measured on a busy machine. All variants' speeds of a kind are marked together: they were
// measured in turns, and none is of use without another one to compare it with.
struct BusySpeeds {
  bool training = false;
  bool decoding = false;
  bool outputs = false;

  bool any() const { return training || decoding || outputs; }
};

constexpr double kBusyWait = 0.1;  // of the time of a measurement: threads that waited so long had no core of their own

// A kind of speed was measured on a busy machine where seeds of one variant differ by a quarter or more, or where
// threads waited for a core for kBusyWait of the time or longer in any cell (WaitShares).
BusySpeeds busy_speeds(const Results& results, const std::vector<VariantRow>& rows);

std::vector<std::string> names_of(
    const BusySpeeds& busy);  // "training", "decoding", "outputs", as keys of results.json

inline constexpr const char* kBusyMachine = "busy machine";  // stands beside every such speed

// Returns rate_text(), with "(busy)" behind the number of a busy machine.
std::string speed_text(const VariantRow& row, double per_second, bool busy);

// Returns a sentence or two for the notes.
std::string speed_note(const Results& results, const std::vector<VariantRow>& rows);

}  // namespace headshare
