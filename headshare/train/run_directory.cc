#include "headshare/train/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iomanip>
#include <sstream>

#include "headshare/base/error.h"

namespace headshare {
namespace {

std::string numbered(const std::string& kind, int64_t step) {
  std::ostringstream name;
  name << kind << '-' << std::setw(8) << std::setfill('0') << step;
  return name.str();
}

// Points `link` to `target` (a name beside it) in one step.
void point_link(const fs::path& link, const std::string& target) {
  const fs::path fresh = link.string() + ".partial-" + std::to_string(::getpid());
  std::error_code code;
  fs::remove(fresh, code);
  fs::create_directory_symlink(target, fresh, code);
  HS_CHECK(!code, "cannot create ", fresh.string(), ": ", code.message());
  rename_durably(fresh, link);
}

// Gives `fresh` the name `target`, which may be taken: no moment without a whole directory of that
// name, where the file system can exchange two.
void take_over(const fs::path& fresh, const fs::path& target) {
  const bool taken = fs::exists(target);
  if (taken && ::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(fresh);
    return;
  }
  fs::remove_all(target);
  rename_durably(fresh, target);
}

std::optional<fs::path> followed(const fs::path& link) {
  std::error_code code;
  const fs::path target = fs::read_symlink(link, code);
  if (code || !fs::is_directory(link)) return std::nullopt;
  return link.parent_path() / target;
}

}  // namespace

RunDirectory::RunDirectory(fs::path path) : path_(std::move(path)), created_(!fs::exists(path_)) {
  make_directories(path_);
  const fs::path lock = path_ / ".lock";
  lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  HS_CHECK(lock_ >= 0, "cannot write in ", path_.string(), ": ", std::strerror(errno));
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock_);
    throw Error(
        join_text(path_.string(), " is in use by another headshare process; wait for it or choose another --out"));
  }
  remove_leftovers();
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;
  const auto entries = std::distance(fs::directory_iterator(path_, ignored), fs::directory_iterator());
  if (created_ && entries == 1) {  // the lock
    fs::remove(path_ / ".lock", ignored);
    fs::remove(path_, ignored);
  }
  ::close(lock_);
}

// Whoever wrote them is gone: it would hold the lock.
void RunDirectory::remove_leftovers() const {
  for (const fs::path& folder : {path_, checkpoints()}) {
    std::error_code ignored;
    std::vector<fs::path> leftovers;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      if (entry.path().filename().string().find(".partial-") != std::string::npos) leftovers.push_back(entry);
    }
    for (const fs::path& one : leftovers) fs::remove_all(one, ignored);
  }
}

bool RunDirectory::has_run() const { return fs::exists(path_ / "resolved.yaml") || fs::exists(checkpoints()); }

std::optional<fs::path> RunDirectory::last_checkpoint() const { return followed(checkpoints() / "last"); }
std::optional<fs::path> RunDirectory::best_model() const { return followed(checkpoints() / "best"); }

std::vector<fs::path> RunDirectory::published(const std::string& kind) const {
  std::vector<fs::path> found;
  if (!fs::exists(checkpoints())) return found;
  for (const auto& entry : fs::directory_iterator(checkpoints())) {
    const std::string name = entry.path().filename();
    const bool whole = name.find(".partial") == std::string::npos;
    if (whole && name.starts_with(kind + "-") && entry.is_directory() && !entry.is_symlink()) found.push_back(entry);
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
  const fs::path fresh = target.string() + ".partial-" + std::to_string(::getpid());
  try {
    fs::remove_all(fresh);
    make_directories(fresh);
    write(fresh);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
    throw;
  }
  take_over(fresh, target);  // a resumed run writes the same step again
  point_link(checkpoints() / link, name);
  std::vector<fs::path> all = published(kind);
  for (size_t i = 0; i + static_cast<size_t>(keep) < all.size(); ++i) {
    if (all[i] != target) fs::remove_all(all[i]);
  }
  return target;
}

void RunDirectory::drop(const std::string& kind) {
  for (const fs::path& one : published(kind)) fs::remove_all(one);
}

void RunDirectory::clear() {
  fs::remove_all(checkpoints());
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename();
    if (name == "resolved.yaml" || name == "metrics.jsonl" || name == "result.json" ||
        name.starts_with("events.out.tfevents.")) {
      fs::remove(entry);
    }
  }
}

}  // namespace headshare
