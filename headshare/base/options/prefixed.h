// Puts options of one struct under a prefix, for a verb that has others of the same names already.
#pragma once

#include <string>

#include "headshare/base/options/field.h"

namespace headshare {

// Returns the same fields under other names: with the prefix "finetune-" "finetune-epochs" for "epochs", aliases
// likewise. Their help says the new names, too.
Fields prefixed(const std::string& prefix, Fields fields);

// Returns `text` with "--epochs" as "--finetune-epochs" where the prefixed `fields` have that, and other options as
// they are.
std::string with_prefixed_names(const std::string& prefix, const Fields& fields, const std::string& text);

}  // namespace headshare
