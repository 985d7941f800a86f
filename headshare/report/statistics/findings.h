// Names sections and figures by what they show, in one line, and never more than the seeds can say. All is plain text.
#pragma once

#include <string>

#include "headshare/report/statistics/pareto.h"

namespace headshare {

// Returns "One seed cannot separate noise from a real difference": below kFewestToJudge seeds.
std::string few_seeds_text(size_t seeds);

// Says what a plan of `variants` with fewer than five seeds cannot decide; "" for more, and where there is nothing to
// compare.
std::string plan_caveat(size_t variants, size_t seeds);

// Returns "gqa and mqa lose less than 2% against mha; sha loses about 5%; undecided: three seeds cannot tell skv apart
// from mha", for example. What is undecided is never called equal.
std::string comparison_finding(const Results& results, const std::vector<VariantRow>& rows);

// Returns "sha is significantly worse than mha; mqa is not significantly different", for example.
std::string difference_finding(const Results& results, const std::vector<VariantRow>& rows);

// Returns "mqa and mha lie on the Pareto frontier against cache", for example; `cost` names the cost. Where
// means_are_decided() does not hold, no frontier is announced: "Undecided: three seeds cannot tell which schemes lie on
// the Pareto frontier against cache".
std::string frontier_finding(const Results& results, const std::vector<VariantRow>& rows, const Rows& frontier,
                             const std::string& cost);

// Returns "Test accuracy differs by up to 0.031 between seeds of one scheme and by up to 0.060 between schemes", for
// example.
std::string seed_finding(const Results& results, const std::vector<VariantRow>& rows);

}  // namespace headshare
