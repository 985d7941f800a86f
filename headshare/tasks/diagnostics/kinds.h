// Each diagnostic task is defined in a file of its own; diagnostics() lists them.
#pragma once

#include "headshare/tasks/diagnostics/diagnostic.h"

namespace headshare {

Diagnostic offsets_diagnostic();
Diagnostic recall_diagnostic();
Diagnostic induction_diagnostic();
Diagnostic dyck_diagnostic();
Diagnostic joint_recall_diagnostic();
Diagnostic kgram_diagnostic();

// Draws `count` different numbers of 0 .. bound - 1 in random order, all such orders equally likely.
std::vector<int64_t> draw_distinct(Philox& random, int64_t bound, int64_t count);

}  // namespace headshare
