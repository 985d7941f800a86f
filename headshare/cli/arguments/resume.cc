#include "headshare/cli/arguments/resume.h"

#include <algorithm>

#include "headshare/base/format.h"
#include "headshare/base/notice.h"
#include "headshare/cli/arguments/config_file.h"
#include "headshare/text/unicode/utf8.h"

namespace headshare {
namespace {

// Files that do not say how many options they have end with this one, whatever the verb.
constexpr const char* kLastOption = "threads";

std::string names_text(std::vector<std::string> names) {
  constexpr size_t kMost = 20;
  if (names.size() <= kMost) return list_text(names);
  const size_t others = names.size() - kMost;
  names.resize(kMost);
  names.push_back(join_text(others, " others"));
  return list_text(names);
}

[[noreturn]] void refuse_cut(const fs::path& resolved, const std::string& what) {
  throw UsageError(join_text(resolved.string(), " was cut short: ", what,
                             "; put the file back as it was, because defaults would make it another run"));
}

// `arguments` have been read from `resolved`, whose last line is whole.
void check_whole(const Arguments& arguments, const fs::path& resolved, const std::optional<size_t>& promised) {
  const std::vector<std::string> missing = arguments.not_configured();
  if (missing.empty()) return;
  const size_t found = arguments.values().size() - missing.size();
  const bool last_lost = std::find(missing.begin(), missing.end(), kLastOption) != missing.end();
  if (promised ? found < *promised : last_lost) {
    refuse_cut(resolved, join_text("it has ", found, " options", promised ? join_text(" of ", *promised) : "",
                                   " and lacks ", names_text(missing)));
  }
  notice(join_text(resolved.string(), " was written by an earlier version, which had no option ", names_text(missing),
                   ": defaults are taken"));
}

}  // namespace

void parse_begun(Arguments* arguments, const std::string& out) {
  const std::string& verb = arguments->page().verb;
  const std::string began = begun_by(out);
  if (!began.empty() && began != verb) {
    throw UsageError(join_text(out, " holds what `headshare ", began, "` wrote, and this is `headshare ", verb,
                               "`; go on with: headshare ", began, " --resume --out ", out));
  }
  const fs::path resolved = fs::path(out) / kResolvedFile;
  if (!path_exists(resolved)) throw UsageError(join_text("nothing to resume in ", out, ": it has no ", kResolvedFile));
  const SettingsCount promised = settings_count(resolved);
  if (promised.options && !promised.last_line_ends) refuse_cut(resolved, "its last line has no end");
  parse_resumed(arguments, {}, out);
  check_whole(*arguments, resolved, promised.options);
}

void parse_resumed(Arguments* arguments, const Words& words, const std::string& out) {
  const std::string resolved = (fs::path(out) / kResolvedFile).string();
  for (const std::string& word : words) {
    if (word.starts_with("--config")) throw UsageError("--resume reads " + resolved + "; leave --config out");
  }
  Words all = {"--config", resolved};
  all.insert(all.end(), words.begin(), words.end());
  arguments->parse(all);
}

void refuse_changed(const nlohmann::json& began, const nlohmann::json& now, const std::set<std::string>& free,
                    const std::string& what) {
  for (const auto& [name, value] : now.items()) {
    if (free.contains(name) || began.at(name) == value) continue;
    throw UsageError(join_text(what, " was begun with --", name, " ", began.at(name).dump(), " and cannot go on with ",
                               value.dump(), "; leave --", name, " out, or use another --out"));
  }
}

void note_other_threads(const nlohmann::json& began, const nlohmann::json& now) {
  const nlohmann::json& before = began.at("threads");
  const nlohmann::json& after = now.at("threads");
  if (before == after || !before.is_number()) return;  // "auto": of a program that did not note the number
  notice(join_text("the run was begun with ", before.dump(), " threads and goes on with ",
                   after.is_number() ? after.dump() : "those of this machine",
                   ": from here on its weights differ in their last bits from those of a run with ", before.dump()));
}

std::string whole_path(const std::string& path) {
  if (path.empty() || path == "-") return path;
  std::error_code code;
  const std::string whole = fs::absolute(path, code).lexically_normal().string();
  // What is written into resolved.yaml must be UTF-8; below a directory that is not, the path stays as it was typed.
  return code || valid_utf8_prefix(whole) != whole.size() ? path : whole;
}

}  // namespace headshare
