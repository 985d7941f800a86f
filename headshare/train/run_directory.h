// A run keeps its files here:
//   .headshare, resolved.yaml, metrics.jsonl, events.out.tfevents.headshare.*
//   checkpoints/step-00000200/   everything resuming needs
//   checkpoints/stopped-...      the same, written because the run was asked to stop: until the next step-...
//   checkpoints/last -> step-... , checkpoints/best -> best-... (a usable model without optimizer)
// Links and directories change by rename, so that a kill at any moment leaves a whole checkpoint. A copy may have lost
// the links, or have directories in their place (cp -rL, an archive): both are understood.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "headshare/base/files/directory_lock.h"
#include "headshare/base/files/output_mark.h"

namespace headshare {

// These are the event files of a run, by a name that no other program gives its own.
inline constexpr const char* kEventFiles = "events.out.tfevents.headshare.*";

// Lists what the training loop writes into a run's directory, but for its event files.
std::vector<std::string> run_names();

// Writes what a model wrote for the items of a part into directory/outputs.txt, a line for each (Evaluation::outputs).
// Does nothing where there is nothing.
void write_outputs(const fs::path& directory, const std::vector<std::string>& outputs);

class RunDirectory {
 public:
  // Takes the directory's lock, creating it; Error when another process holds the lock. A process of a run that
  // `looks_on` while another one writes takes no lock, and calls only const functions.
  explicit RunDirectory(const fs::path& path, bool looks_on = false);

  const fs::path& path() const { return path_; }
  fs::path checkpoints() const { return path() / "checkpoints"; }

  // Tells whether a run began here before: there is a resolved.yaml or a checkpoint.
  bool has_run() const;

  // Lists the checkpoints that a run may be resumed from, newest first: the directories of steps and stops, and one
  // called "last". Their reader has to tell whether each is whole.
  std::vector<fs::path> resumable() const;

  // Returns the checkpoint that was written last, if any.
  std::optional<fs::path> last_checkpoint() const;
  std::optional<fs::path> best_model() const;

  // Fills a new directory by `write`, then gives it its name and points the link `name` to it.
  // `kind` is "step", "stopped" or "best"; of this kind all but the newest `keep` are deleted. A
  // directory of that name is replaced in one step where the file system can (renameat2).
  fs::path publish(const std::string& kind, int64_t step, int64_t keep, const std::string& link,
                   const std::function<void(const fs::path&)>& write);

  // Deletes every directory of a kind, and links to what is gone.
  void drop(const std::string& kind);

  // Lists checkpoints of steps, oldest first, without "stopped" ones.
  std::vector<fs::path> step_checkpoints() const;

  // Removes what the training loop left in a directory that belongs to a larger output.
  void clear();

 private:
  std::vector<fs::path> published(const std::string& kind) const;

  fs::path path_;
  std::optional<DirectoryLock> lock_;
};

}  // namespace headshare
