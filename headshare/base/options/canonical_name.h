// Options have one spelling for their names.
#pragma once

#include <string>

namespace headshare {

// Returns a name in lower case with '_' read as '-', as names of fields are: "Learning_Rate" -> "learning-rate".
std::string canonical_name(std::string name);

}  // namespace headshare
