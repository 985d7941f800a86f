#include "headshare/host/resolved_file.h"

#include <algorithm>
#include <string_view>

#include "headshare/base/notice.h"
#include "headshare/base/strings/format.h"
#include "headshare/base/strings/valid_utf8.h"
#include "headshare/train/processes.h"

namespace headshare {
namespace {

// The first versions of `train`, `compare` and `finetune` had these options already. A file that does not say how many
// options it has and lacks one of these has lost it; other options may be younger than the file.
constexpr std::string_view kFirstOptions =
    " accumulation activation adam-epsilon attention-dropout average-last batch-size beta1 beta2 context "
    "d-model data decay-steps dropout ema-decay epochs evaluate-every groups head-width heads "
    "init-deviation key-width layers learning-rate max-length mhe-deviation mhe-mul-offset "
    "min-learning-rate norm-epsilon positions schedule scheme schemes seed seeds steps stride "
    "test-fraction test-text text threads tie-embeddings tokenizer tokenizer-path validation-fraction "
    "validation-text vocabulary-size warmup-ratio warmup-steps weight-decay ";

bool is_first_option(const std::string& name) { return kFirstOptions.find(" " + name + " ") != std::string_view::npos; }

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

std::vector<std::string> missing_options(const OptionGroups& groups, const std::vector<GivenOption>& given) {
  std::set<std::string> found;
  for (const GivenOption& one : given) found.insert(one.name);
  std::vector<std::string> missing;
  for (const OptionGroup& group : groups) {
    for (const Field& one : group.fields) {
      if (!found.contains(one.name)) missing.push_back(one.name);
    }
  }
  return missing;
}

// Throws UsageError where `given`, read from `resolved`, lacks options because the file was cut short; notes options
// that are younger than the file. The last line of `resolved` is whole.
void check_whole(const OptionGroups& groups, const std::vector<GivenOption>& given, const fs::path& resolved,
                 const std::optional<size_t>& promised) {
  const std::vector<std::string> missing = missing_options(groups, given);
  if (missing.empty()) return;
  if (promised && given.size() < *promised) {
    refuse_cut(resolved,
               join_text("it has ", given.size(), " options of ", *promised, " and lacks ", names_text(missing)));
  }
  std::vector<std::string> lost = missing;
  std::erase_if(lost, [](const std::string& name) { return !is_first_option(name); });
  if (!promised && !lost.empty()) {
    refuse_cut(resolved, join_text("it has ", given.size(), " options and lacks ", names_text(lost)));
  }
  notice(join_text(resolved.string(), " was written by an earlier version, which had no option ", names_text(missing),
                   ": defaults are taken"));
}

// Returns the file in `out` once it is known to be the verb's.
SettingsFile file_of_verb(const std::string& verb, const std::string& out) {
  const fs::path resolved = fs::path(out) / kResolvedFile;
  const auto file = path_exists(resolved) ? std::optional<SettingsFile>(resolved) : std::nullopt;
  std::string began = marked_verb(out);
  if (began.empty() && file) began = file->titled_verb();
  if (!began.empty() && began != verb) {
    throw UsageError(join_text(out, " holds what `headshare ", began, "` wrote, and this is `headshare ", verb,
                               "`; go on with: headshare ", began, " --resume --out ", out));
  }
  if (!file) throw UsageError(join_text("nothing to resume in ", out, ": it has no ", kResolvedFile));
  return *file;
}

}  // namespace

void read_resolved(OptionGroups& groups, const std::string& verb, const std::string& out, Reducer& processes) {
  std::string text;
  on_process_0(processes, [&](const Beat& /*beat*/) { text = file_of_verb(verb, out).text(); });
  const SettingsFile file(fs::path(out) / kResolvedFile, text_of(processes, text));
  const std::optional<size_t> promised = file.promised_options();
  if (promised && !file.last_line_ends()) refuse_cut(file.path(), "its last line has no end");
  check_whole(groups, file.set(groups), file.path(), promised);
}

void refuse_changed(const nlohmann::json& began, const nlohmann::json& now, const std::set<std::string>& free,
                    const std::string& what) {
  for (const auto& [name, value] : now.items()) {
    if (free.contains(name) || began.at(name) == value) continue;
    throw UsageError(join_text(what, " was begun with --", name, " ", began.at(name).dump(), " and cannot go on with ",
                               value.dump(), "; leave --", name, " out, or use another --out"));
  }
}

void note_other_threads(const RuntimeOptions& began, const RuntimeOptions& now) {
  if (!began.threads || began.threads == now.threads) return;  // a program that did not note the number wrote none
  notice(join_text("the run was begun with --threads ", *began.threads, " and goes on with ",
                   now.threads ? std::to_string(*now.threads) : "those of this machine",
                   ": from here on its weights differ in their last bits from those of a run with ", *began.threads));
}

std::string whole_path(const std::string& path) {
  if (path.empty() || path == "-") return path;
  std::error_code code;
  const std::string whole = fs::absolute(path, code).lexically_normal().string();
  // Everything in resolved.yaml must be UTF-8; below a directory whose name is not, the path stays as it was typed.
  return code || valid_utf8_prefix(whole) != whole.size() ? path : whole;
}

}  // namespace headshare
