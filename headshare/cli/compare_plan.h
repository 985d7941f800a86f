// What `headshare compare --dry-run` prints.
#pragma once

#include <string>

#include "headshare/cli/compare_arguments.h"

namespace headshare {

// The sizes of all models; where the data can be read, what it is and how long the whole takes, too.
std::string plan_text(const CompareCommand& command);

}  // namespace headshare
