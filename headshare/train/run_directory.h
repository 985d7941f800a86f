// Where a run keeps its files:
//   resolved.yaml, metrics.jsonl, events.out.tfevents.*
//   checkpoints/step-00000200/   everything resuming needs
//   checkpoints/stopped-...      the same, written because the run was asked to stop: until the next step-...
//   checkpoints/last -> step-... , checkpoints/best -> best-... (a usable model without optimizer)
// Links and directories change by rename, so that a kill at any moment leaves a whole checkpoint.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "headshare/base/file.h"

namespace headshare {

class RunDirectory {
 public:
  // Creates the directory, takes its lock and removes what a killed process left half-written; Error
  // when another process holds the lock.
  explicit RunDirectory(fs::path path);

  // Removes the directory again when nothing was put into it: a mistake in the call leaves nothing.
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const fs::path& path() const { return path_; }
  fs::path checkpoints() const { return path_ / "checkpoints"; }

  // True when a run began here before: there is a resolved.yaml or a checkpoint.
  bool has_run() const;

  // The newest whole checkpoint, if any.
  std::optional<fs::path> last_checkpoint() const;
  std::optional<fs::path> best_model() const;

  // Fills a new directory by `write`, then gives it its name and points the link `name` to it.
  // `kind` is "step", "stopped" or "best"; of this kind all but the newest `keep` are deleted. A
  // directory of that name is replaced in one step where the file system can (renameat2).
  fs::path publish(const std::string& kind, int64_t step, int64_t keep, const std::string& link,
                   const std::function<void(const fs::path&)>& write);

  // Deletes every directory of a kind.
  void drop(const std::string& kind);

  // Checkpoints of steps, oldest first, without "stopped" ones.
  std::vector<fs::path> step_checkpoints() const;

  // Removes everything a run left: for --overwrite.
  void clear();

 private:
  std::vector<fs::path> published(const std::string& kind) const;
  void remove_leftovers() const;

  fs::path path_;
  bool created_;
  int lock_ = -1;
};

}  // namespace headshare
