#include "headshare/base/output_mark.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr uint64_t kMostMarkBytes = 1 << 20;
constexpr uint64_t kMostResolvedBytes = 16 << 20;

nlohmann::json read_mark(const fs::path& directory) {
  const fs::path path = directory / kMarkFile;
  if (!path_exists(path)) return {};
  return nlohmann::json::parse(read_file(path, kMostMarkBytes), nullptr, /*allow_exceptions=*/false);
}

// The verb that began here; "" where none did.
std::string verb_of(const fs::path& directory) {
  const nlohmann::json mark = read_mark(directory);
  if (mark.is_object() && mark.contains("verb") && mark["verb"].is_string()) return mark["verb"];
  const fs::path resolved = directory / kResolvedFile;
  if (!path_exists(resolved)) return {};
  const std::string text = read_file(resolved, kMostResolvedBytes);
  constexpr std::string_view kLead = "# headshare ";
  if (!text.starts_with(kLead)) return {};
  return text.substr(kLead.size(), text.find_first_of(" \n", kLead.size()) - kLead.size());
}

}  // namespace

bool name_matches(const std::string& name, const std::string& pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string::npos) return name == pattern;
  const std::string_view end = std::string_view(pattern).substr(star + 1);
  return name.size() + 1 >= pattern.size() && name.starts_with(pattern.substr(0, star)) && name.ends_with(end);
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
    // Unreadable: what is beside it will say so itself.
  }
  return names;
}

bool OutputMark::begun() const { return verb_of(directory_) == kind_.verb; }

std::vector<fs::path> OutputMark::taken() const {
  std::vector<fs::path> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(directory_, code)) {
    const std::string name = entry.path().filename().string();
    const bool ours = std::any_of(kind_.names.begin(), kind_.names.end(),
                                  [&](const std::string& pattern) { return name_matches(name, pattern); });
    if (ours) found.push_back(entry.path());
  }
  HS_CHECK(!code, "cannot list ", directory_.string(), ": ", code.message());
  std::sort(found.begin(), found.end());
  return found;
}

void OutputMark::check() const {
  const std::string verb = verb_of(directory_);
  if (verb == kind_.verb) return;
  HS_CHECK(verb.empty(), directory_.string(), " holds what `headshare ", verb, "` wrote; choose another --out");
  const std::vector<fs::path> foreign = taken();
  HS_CHECK(foreign.empty(), foreign.front().string(), " is there already and is not of ", kind_.what,
           " of headshare's: it would be lost; choose another --out, or move it away");
}

void OutputMark::set() const {
  const nlohmann::ordered_json mark = {{"about", "headshare wrote the files of these names; --overwrite deletes them"},
                                       {"verb", kind_.verb},
                                       {"names", kind_.names}};
  write_file(directory_ / kMarkFile, mark.dump(2) + "\n");
}

void OutputMark::clear(const std::vector<std::string>& keep) const {
  if (!begun()) return;
  for (const fs::path& one : taken()) {
    if (std::find(keep.begin(), keep.end(), one.filename().string()) == keep.end()) discard(one);
  }
}

}  // namespace headshare
