#include "headshare/host/cell_attempt.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/base/files/list_folder.h"
#include "headshare/base/strings/number.h"

namespace headshare {
namespace {

constexpr const char* kCheckpoints = "checkpoints";
constexpr const char* kMetrics = "metrics.jsonl";

// Changed says that a folder changed while it was copied, because the process of an earlier attempt still works.
struct Changed {};

std::string attempt_lead(const CellKey& key) { return "." + cell_directory(key) + ".attempt-"; }

// Returns how the names of attempts of one comparison begin: another comparison's must not be gone on with.
std::string attempt_lead(const CellKey& key, const std::string& comparison) {
  constexpr size_t kDigits = 8;
  return attempt_lead(key) + comparison.substr(0, kDigits) + "-";
}

fs::path attempt_folder(const fs::path& home, const AttemptName& name) {
  return home / "cells" / join_text(attempt_lead(name.key, name.comparison), name.number);
}

// Returns the number of an attempt; nothing for a name that is none, or unfinished, or of another comparison.
std::optional<int64_t> attempt_number(const fs::path& path, const AttemptName& like) {
  const std::string name = path.filename().string();
  const std::string lead = attempt_lead(like.key, like.comparison);
  if (!name.starts_with(lead)) return std::nullopt;
  return number_in<int64_t>(std::string_view(name).substr(lead.size()));
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code code;
  for (const fs::path& one : list_folder(folder, code)) {
    if (!parse_partial(one) && one.filename() != ".lock") entries.push_back(one);
  }
  if (code) throw Changed();
  std::sort(entries.begin(), entries.end());
  return entries;
}

ino_t identity(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) throw Changed();
  return status.st_ino;
}

// Throws Changed where the source is gone, else Error.
void check_made(const std::error_code& code, const fs::path& from, const fs::path& to) {
  std::error_code ignored;
  if (code && !fs::exists(fs::symlink_status(from, ignored))) throw Changed();
  HS_CHECK(!code, "cannot go on with ", from.string(), ": cannot write ", to.string(), ": ", code.message(),
           "; nothing is lost, run this cell again once that is mended");
}

void copy_one(const fs::path& from, const fs::path& to) {
  std::error_code code;
  fs::copy_file(from, to, code);
  check_made(code, from, to);
}

// Links all files of a checkpoint. A checkpoint that is dropped loses its name before its files, so that one that still
// has its name was whole.
void link_checkpoint(const fs::path& from, const fs::path& to) {
  const ino_t before = identity(from);
  make_directories(to);
  for (const fs::path& file : entries_of(from)) {
    std::error_code code;
    fs::create_hard_link(file, to / file.filename(), code);
    if (code) copy_one(file, to / file.filename());  // the file system knows no hard links
  }
  if (identity(from) != before) throw Changed();
}

// Takes over the checkpoints of a run, with the links to the last and to the best of them.
void link_checkpoints(const fs::path& from, const fs::path& to) {
  make_directories(to);
  std::vector<fs::path> links;
  for (const fs::path& entry : entries_of(from)) {
    std::error_code code;
    if (fs::is_symlink(fs::symlink_status(entry, code))) {
      links.push_back(entry);
    } else if (fs::is_directory(entry, code)) {
      link_checkpoint(entry, to / entry.filename());
    }
  }
  for (const fs::path& link : links) {
    std::error_code code;
    fs::copy_symlink(link, to / link.filename(), code);
    check_made(code, link, to / link.filename());
    if (fs::exists(link, code) && !fs::exists(to / link.filename(), code)) throw Changed();  // to a newer one
  }
}

// Takes over a folder of a cell. Results come before the checkpoints: they say that what stands beside them is final.
// Metrics come after: lines of later steps are cut off when a run goes on.
void take_over(const fs::path& from, const fs::path& to) {
  make_directories(to);
  const std::vector<fs::path> entries = entries_of(from);
  std::error_code code;
  for (const fs::path& one : entries) {
    if (fs::is_regular_file(one, code) && one.filename() != kMetrics) copy_one(one, to / one.filename());
  }
  for (const fs::path& one : entries) {
    if (!fs::is_directory(one, code)) continue;
    one.filename() == kCheckpoints ? link_checkpoints(one, to / kCheckpoints) : take_over(one, to / one.filename());
  }
  if (fs::exists(from / kMetrics, code)) copy_one(from / kMetrics, to / kMetrics);
}

// Makes what an earlier version left under the cell's own name an attempt before the first. A cell that another process
// publishes at this moment keeps its name.
void rename_unfinished(const fs::path& home, const AttemptName& name) {
  const fs::path own = cell_home(home, name.key);
  const fs::path aside = attempt_folder(home, {.key = name.key, .comparison = name.comparison, .number = 0});
  std::error_code code;
  if (is_finished(home, name.key) || !fs::exists(own, code)) return;
  fs::rename(own, aside, code);
  if (!code && fs::exists(aside / kCellFile, code)) fs::rename(aside, own, code);
}

// Returns the numbers of the attempts before this one, ascending.
std::vector<int64_t> numbers_below(const fs::path& home, const AttemptName& name) {
  std::vector<int64_t> numbers;
  std::error_code ignored;
  for (const fs::path& one : list_folder(home / "cells", ignored)) {
    const std::optional<int64_t> found = attempt_number(one, name);
    if (found && *found < name.number) numbers.push_back(*found);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

fs::path numbered(const fs::path& home, const AttemptName& name, int64_t number) {
  return attempt_folder(home, {.key = name.key, .comparison = name.comparison, .number = number});
}

// Returns the newest attempt before this one; "" where there is none.
fs::path newest_below(const fs::path& home, const AttemptName& name) {
  const std::vector<int64_t> numbers = numbers_below(home, name);
  return numbers.empty() ? fs::path() : numbered(home, name, numbers.back());
}

}  // namespace

fs::path newest_attempt(const fs::path& home, const CellKey& key, const std::string& comparison) {
  return newest_below(home, {.key = key, .comparison = comparison, .number = INT64_MAX});
}

fs::path begin_attempt(const fs::path& home, const AttemptName& name) {
  constexpr int kMostTries = 20;
  make_directories(home / "cells");
  rename_unfinished(home, name);
  const fs::path attempt = attempt_folder(home, name);
  const fs::path fresh = partial_name(attempt);
  for (int i = 0;; ++i) {
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
    const fs::path before = newest_below(home, name);
    try {
      before.empty() ? make_directories(fresh) : take_over(before, fresh);
      break;
    } catch (const Changed&) {
      HS_CHECK(i < kMostTries, "cannot go on with ", before.string(), ": another process changes it all the time; ",
               "stop that process, or run this cell again later");
    } catch (...) {
      fs::remove_all(fresh, ignored);
      throw;
    }
  }
  rename_durably(fresh, attempt);
  // This attempt has all of the earlier ones. A process that still works there ends: its folder is gone.
  for (const int64_t old : numbers_below(home, name)) discard(numbered(home, name, old));
  return attempt;
}

bool publish_attempt(const fs::path& attempt, const fs::path& home, const CellKey& key) {
  remove_partials(attempt);
  remove_partials(attempt / kCheckpoints);
  const fs::path own = cell_home(home, key);
  if (::rename(attempt.c_str(), own.c_str()) == 0) return true;
  HS_CHECK(errno == ENOTEMPTY || errno == EEXIST, "cannot rename ", attempt.string(), " to ", own.string(), ": ",
           std::strerror(errno));
  return false;
}

void sweep_attempts(const fs::path& home, const CellKey& key) {
  std::vector<fs::path> attempts;
  std::error_code ignored;
  for (const fs::path& one : list_folder(home / "cells", ignored)) {
    if (one.filename().string().starts_with(attempt_lead(key))) attempts.push_back(one);
  }
  for (const fs::path& one : attempts) discard(one);
}

}  // namespace headshare
