#include "headshare/base/files/output_mark.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_text.h"

namespace headshare {
namespace {

constexpr uint64_t kMostMarkBytes = 1 << 20;
constexpr uint64_t kMostResolvedBytes = 16 << 20;

nlohmann::json read_mark(const fs::path& directory) {
  const fs::path path = directory / kMarkFile;
  if (!path_exists(path)) return {};
  return json_or_discarded(read_file(path, kMostMarkBytes));
}

}  // namespace

std::vector<std::string> OwnNames::all() const {
  std::vector<std::string> both = names;
  both.insert(both.end(), unmistakable.begin(), unmistakable.end());
  return both;
}

std::vector<fs::path> entries_matching(const fs::path& directory, const std::vector<std::string>& patterns) {
  std::vector<fs::path> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(directory, code)) {
    if (name_matches(entry.path().filename().string(), patterns)) found.push_back(entry.path());
  }
  HS_CHECK(!code, "cannot list ", directory.string(), ": ", code.message());
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> marked_names(const fs::path& directory) {
  std::vector<std::string> names;
  try {
    const nlohmann::json mark = read_mark(directory);
    if (!mark.is_object() || !mark.contains("names") || !mark["names"].is_array()) return {};
    for (const nlohmann::json& name : mark["names"]) {
      if (name.is_string()) names.push_back(name);
    }
  } catch (const Error&) {
    // The mark is unreadable: whoever reads what is beside it will say so.
  }
  return names;
}

std::string marked_verb(const fs::path& directory) {
  const nlohmann::json mark = read_mark(directory);
  const bool named = mark.is_object() && mark.contains("verb") && mark["verb"].is_string();
  return named ? mark["verb"].get<std::string>() : "";
}

std::string verb_of_title(std::string_view text) {
  if (!text.starts_with(kTitleLead)) return "";
  const size_t end = text.find_first_of(" \n", kTitleLead.size());
  return end == std::string_view::npos ? "" : std::string(text.substr(kTitleLead.size(), end - kTitleLead.size()));
}

std::string begun_by(const fs::path& directory) {
  if (std::string verb = marked_verb(directory); !verb.empty()) return verb;
  const fs::path resolved = directory / kResolvedFile;
  return path_exists(resolved) ? verb_of_title(read_file(resolved, kMostResolvedBytes)) : "";
}

bool OutputMark::begun() const { return begun_by(directory_) == kind_.verb; }

bool OutputMark::owns(const std::string& name) const {
  if (!begun()) return false;
  const std::vector<std::string> marked = marked_names(directory_);
  return marked.empty() ? may_write(name) : name_matches(name, marked);
}

void OutputMark::check() const {
  const std::string verb = begun_by(directory_);
  if (verb == kind_.verb) return;
  HS_CHECK(verb.empty(), directory_.string(), " holds what `headshare ", verb, "` wrote; choose another --out");
  const std::vector<fs::path> foreign = entries_matching(directory_, kind_.names);
  HS_CHECK(foreign.empty(), foreign.front().string(), " exists and does not belong to ", kind_.what,
           " of headshare: it would be lost; choose another --out, or move that file");
}

void OutputMark::set() const {
  check();  // again: minutes may have passed
  const nlohmann::ordered_json mark = {{"about", "headshare wrote the files of these names; --overwrite deletes them"},
                                       {"verb", kind_.verb},
                                       {"names", kind_.all()}};
  write_file(directory_ / kMarkFile, json_text(mark, 2) + "\n");
  std::vector<std::string> ours = kind_.all();
  ours.emplace_back(kMarkFile);
  remove_partials(directory_, ours);
}

void OutputMark::clear(const std::vector<std::string>& keep) const {
  if (!begun()) return;
  for (const fs::path& one : entries_matching(directory_, kind_.all())) {
    if (std::find(keep.begin(), keep.end(), one.filename().string()) == keep.end()) discard(one);
  }
}

}  // namespace headshare
