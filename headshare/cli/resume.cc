#include "headshare/cli/resume.h"

namespace headshare {

Words resumed_words(const Words& words, const std::string& out) {
  const std::string resolved = (fs::path(out) / kResolvedFile).string();
  if (!fs::exists(resolved)) throw UsageError(join_text("nothing to resume in ", out, ": it has no ", kResolvedFile));
  for (const std::string& word : words) {
    if (word.starts_with("--config")) throw UsageError("--resume reads " + resolved + "; leave --config away");
  }
  Words all = {"--config", resolved};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

std::string whole_path(const std::string& path) {
  return path.empty() || path == "-" ? path : fs::absolute(path).lexically_normal().string();
}

}  // namespace headshare
