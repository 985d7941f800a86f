#include "headshare/base/options/canonical_name.h"

#include <cctype>

namespace headshare {

std::string canonical_name(std::string name) {
  for (char& c : name) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace headshare
