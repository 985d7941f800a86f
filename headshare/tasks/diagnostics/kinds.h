// The diagnostic tasks, each in its file; diagnostics() lists them.
#pragma once

#include "headshare/tasks/diagnostics/diagnostic.h"

namespace headshare {

Diagnostic offsets_diagnostic();
Diagnostic recall_diagnostic();
Diagnostic induction_diagnostic();
Diagnostic dyck_diagnostic();
Diagnostic joint_recall_diagnostic();
Diagnostic kgram_diagnostic();

// `count` different numbers of 0 .. bound - 1 in random order, all such orders equally likely.
std::vector<int64_t> draw_distinct(Philox& random, int64_t bound, int64_t count);

}  // namespace headshare
