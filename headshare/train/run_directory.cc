#include "headshare/train/run_directory.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "headshare/base/error.h"
#include "headshare/base/strings/number.h"
#include "headshare/models/noted_weights.h"
#include "headshare/train/launch_file.h"

namespace headshare {
namespace {

constexpr const char* kOutputsFile = "outputs.txt";

std::string numbered(const std::string& kind, int64_t step) {
  std::ostringstream name;
  name << kind << '-' << std::setw(8) << std::setfill('0') << step;
  return name.str();
}

// Returns the step in a name such as step-00000200; -1 for "last".
int64_t step_in(const fs::path& directory) {
  const std::string name = directory.filename().string();
  return number_in<int64_t>(name.substr(name.find('-') + 1)).value_or(-1);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// Points `link` to `target` (a name beside it) in one step. A directory of that name is a copy that was made of what
// the link led to.
void point_link(const fs::path& link, const std::string& target) {
  const fs::path fresh = partial_name(link);
  std::error_code code;
  fs::remove_all(fresh, code);
  if (!fs::is_symlink(link, code) && is_folder(link)) discard(link);
  fs::create_directory_symlink(target, fresh, code);
  HS_CHECK(!code, "cannot create ", fresh.string(), ": ", code.message());
  rename_durably(fresh, link);
}

// Returns where a link leads, or the directory that stands in its place.
std::optional<fs::path> followed(const fs::path& link) {
  if (!is_folder(link)) return std::nullopt;
  std::error_code code;
  const fs::path target = fs::read_symlink(link, code);
  return code ? link : link.parent_path() / target;
}

}  // namespace

std::vector<std::string> run_names() {
  return {kResolvedFile, "metrics.jsonl", "result.json", kOutputsFile, "checkpoints", kTeacherFile, kLaunchFile};
}

void write_outputs(const fs::path& directory, const std::vector<std::string>& outputs) {
  if (outputs.empty()) return;
  std::string text;
  for (const std::string& line : outputs) text += line + "\n";
  write_file(directory / kOutputsFile, text);
}

RunDirectory::RunDirectory(const fs::path& path, bool looks_on) : path_(path) {
  if (looks_on) return;
  lock_.emplace(path);
  path_ = lock_->path();
}

bool RunDirectory::has_run() const { return path_exists(path() / kResolvedFile) || path_exists(checkpoints()); }

std::vector<fs::path> RunDirectory::resumable() const {
  std::vector<fs::path> found = published("step");
  for (fs::path& one : published("stopped")) found.push_back(std::move(one));
  std::stable_sort(found.begin(), found.end(),
                   [](const fs::path& a, const fs::path& b) { return step_in(a) > step_in(b); });
  // The checkpoint that the link leads to was written last: a run that went back to an earlier step writes the later
  // ones again.
  if (const auto last = last_checkpoint()) {
    std::erase(found, *last);
    found.insert(found.begin(), *last);
  }
  return found;
}

std::optional<fs::path> RunDirectory::last_checkpoint() const { return followed(checkpoints() / "last"); }
std::optional<fs::path> RunDirectory::best_model() const { return followed(checkpoints() / "best"); }

std::vector<fs::path> RunDirectory::published(const std::string& kind) const {
  std::vector<fs::path> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(checkpoints(), code)) {
    const std::string name = entry.path().filename();
    const bool whole = !parse_partial(entry.path());
    if (whole && name.starts_with(kind + "-") && entry.is_directory(code) && !entry.is_symlink(code)) {
      found.push_back(entry);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> RunDirectory::step_checkpoints() const { return published("step"); }

fs::path RunDirectory::publish(const std::string& kind, int64_t step, int64_t keep, const std::string& link,
                               const std::function<void(const fs::path&)>& write) {
  make_directories(checkpoints());
  const std::string name = numbered(kind, step);
  const fs::path target = checkpoints() / name;
  const fs::path fresh = partial_name(target);
  try {
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
    make_directories(fresh);
    write(fresh);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
    throw;
  }
  replace_directory(fresh, target);  // a resumed run writes the same step again
  point_link(checkpoints() / link, name);
  std::vector<fs::path> all = published(kind);
  for (size_t i = 0; i + static_cast<size_t>(keep) < all.size(); ++i) {
    if (all[i] != target) discard(all[i]);
  }
  return target;
}

void RunDirectory::drop(const std::string& kind) {
  const std::vector<fs::path> dropped = published(kind);
  for (const char* name : {"last", "best"}) {
    const fs::path link = checkpoints() / name;
    std::error_code code;
    const fs::path target = checkpoints() / fs::read_symlink(link, code);
    if (code) continue;  // no link
    // A link to nothing cannot be copied, so the link goes first.
    const bool leads_to_one = std::find(dropped.begin(), dropped.end(), target) != dropped.end();
    if (leads_to_one || !is_folder(target)) fs::remove(link, code);
  }
  for (const fs::path& one : dropped) discard(one);
}

void RunDirectory::clear() {
  std::vector<std::string> names = run_names();
  names.emplace_back(kEventFiles);
  for (const fs::path& one : entries_matching(path(), names)) discard(one);
}

}  // namespace headshare
