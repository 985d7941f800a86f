// Writes results.json as a whole: the facts, and beside them the rows of summarise(), the headline and which speeds
// were measured on a busy machine, for readers that want no statistics of their own. Nobody reads these back: they are
// computed anew.
#pragma once

#include "headshare/report/results/results.h"

namespace headshare {

// docs/results-format.md describes the keys. Throws Error where to_json(results) does.
nlohmann::ordered_json results_file(const Results& results);

}  // namespace headshare
