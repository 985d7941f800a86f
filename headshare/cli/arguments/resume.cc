#include "headshare/cli/arguments/resume.h"

#include "headshare/text/unicode/utf8.h"

namespace headshare {

Words resumed_words(const Words& words, const std::string& out) {
  const std::string resolved = (fs::path(out) / kResolvedFile).string();
  if (!path_exists(resolved)) throw UsageError(join_text("nothing to resume in ", out, ": it has no ", kResolvedFile));
  for (const std::string& word : words) {
    if (word.starts_with("--config")) throw UsageError("--resume reads " + resolved + "; leave --config out");
  }
  Words all = {"--config", resolved};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

void refuse_changed(const nlohmann::json& began, const nlohmann::json& now, const std::set<std::string>& free,
                    const std::string& what) {
  for (const auto& [name, value] : now.items()) {
    if (free.contains(name) || began.at(name) == value) continue;
    throw UsageError(join_text(what, " was begun with --", name, " ", began.at(name).dump(), " and cannot go on with ",
                               value.dump(), "; leave --", name, " out, or use another --out"));
  }
}

std::string whole_path(const std::string& path) {
  if (path.empty() || path == "-") return path;
  std::error_code code;
  const std::string whole = fs::absolute(path, code).lexically_normal().string();
  // What is written into resolved.yaml must be UTF-8; below a directory that is not, the path stays as it was typed.
  return code || valid_utf8_prefix(whole) != whole.size() ? path : whole;
}

}  // namespace headshare
