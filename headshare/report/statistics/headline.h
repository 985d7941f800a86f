// Tells what a comparison found in two or three sentences, for someone who has to decide.
#pragma once

#include <string>
#include <vector>

#include "headshare/report/statistics/variant_rows.h"

namespace headshare {

struct Headline {
  std::string finding;               // what came out
  std::vector<std::string> caveats;  // what to hold against it: one seed, no test part, a partial run, failures

  std::string text() const;  // all of it
};

// A variant counts as significantly better or worse than the reference when the interval of its difference, which is
// judged together with those of the other variants, does not contain 0. A cheaper one is recommended when its whole
// interval lies within 2% of the reference's measure.
Headline headline(const Results& results, const std::vector<VariantRow>& rows);

}  // namespace headshare
