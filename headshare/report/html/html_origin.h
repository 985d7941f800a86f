// Writes "How it was made": commands, machine and options of a comparison, in words.
#pragma once

#include <string>

#include "headshare/report/results/results.h"

namespace headshare {

// Returns the section without its heading. What is not known by name is named by its key in words; nothing is left out.
std::string origin_html(const Results& results);

}  // namespace headshare
