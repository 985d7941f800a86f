// Options of one struct under a prefix, for a verb that has others of the same names already.
#pragma once

#include <string>

#include "headshare/base/field.h"

namespace headshare {

// The same fields under other names: with the prefix "finetune-" "finetune-epochs" for "epochs", aliases likewise.
Fields prefixed(const std::string& prefix, Fields fields);

}  // namespace headshare
