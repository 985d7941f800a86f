// Lists a folder whose disk may fail between two entries.
#pragma once

#include <system_error>
#include <vector>

#include "headshare/base/files/file.h"

namespace headshare {

// Returns what stands in a folder, in no order. Where the disk fails, also between two entries, `code` says so and what
// was found until then is returned. The ++ of a directory_iterator would throw.
inline std::vector<fs::path> list_folder(const fs::path& folder, std::error_code& code) {
  std::vector<fs::path> found;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    found.push_back(it->path());
  }
  return found;
}

}  // namespace headshare
