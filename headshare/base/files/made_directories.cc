#include "headshare/base/files/made_directories.h"

namespace headshare {

MadeDirectories::MadeDirectories(const fs::path& path) {
  std::vector<fs::path> missing;
  for (fs::path one = path; !one.empty() && !path_exists(one); one = one.parent_path()) {
    if (one.has_filename()) missing.push_back(one);
  }
  make_directories(path);
  made_ = std::move(missing);
}

MadeDirectories::~MadeDirectories() {
  std::error_code code;
  for (const fs::path& one : made_) {
    if (!fs::is_empty(one, code) || code || !fs::remove(one, code)) return;
  }
}

}  // namespace headshare
