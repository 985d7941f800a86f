// Makes several comparisons one, where they are one.
#pragma once

#include <string>
#include <vector>

#include "headshare/report/results/results.h"

namespace headshare {

struct NamedResults {
  std::string name;  // of the directory, for messages
  Results results;
};

// Runs of the same subject with the same options become one; schemes, seeds, sweep and preset may differ,
// and what no result depends on (threads, directories). A cell that both have must be the same in both,
// timings and memory aside, and counts once; finished wins over failed. Throws Error naming both runs
// where a cell differs. Others stay apart, in the order in which they came. An option that only one run has was unknown
// to the other's program: it must be unset, or as in `usual`, the options that nobody has set.
std::vector<NamedResults> merge_results(std::vector<NamedResults> all,
                                        const nlohmann::json& usual = nlohmann::json::object());

}  // namespace headshare
