// A comparison in two or three sentences, for someone who has to decide.
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

// A variant counts as level with the reference when the 95% interval of its difference contains 0, as better
// or worse when it does not.
Headline headline(const Results& results, const std::vector<VariantRow>& rows);

}  // namespace headshare
