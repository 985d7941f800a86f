// Words of a command line are written as a shell reads them.
#pragma once

#include <string>

namespace headshare {

// Returns the word in quotes where a shell would take it for something else.
std::string shell_word(const std::string& word);

}  // namespace headshare
