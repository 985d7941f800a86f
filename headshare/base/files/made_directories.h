// Creates directories that exist only if something is put into them.
#pragma once

#include <vector>

#include "headshare/base/files/file.h"

namespace headshare {

class MadeDirectories {
 public:
  // Creates a directory and its missing parents; throws Error naming the path when that fails.
  explicit MadeDirectories(const fs::path& path);

  // Removes those of them that are empty: a mistake in the call leaves nothing.
  ~MadeDirectories();
  MadeDirectories(const MadeDirectories&) = delete;
  MadeDirectories& operator=(const MadeDirectories&) = delete;

 private:
  std::vector<fs::path> made_;  // the innermost first
};

}  // namespace headshare
