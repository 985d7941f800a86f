// This header reads and writes metrics as JSON lines: one object per line, readable while the run goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "headshare/train/append_file.h"

namespace headshare {

// A line with this member set to true is written at a run's end, each time it is resumed.
inline constexpr const char* kRepeated = "averaged";

// With this step, JsonlWriter::resume() keeps nothing: the run was stopped before its first checkpoint.
inline constexpr int64_t kNothingDone = -1;

// Returns the greatest "step" in a file of such lines; 0 without one, or without the file. Damaged lines are passed
// over.
int64_t last_step(const fs::path& path);

// Lines are written in the order of their "step" (a whole number); lines without one, such as events,
// belong to the step before them.
class JsonlWriter {
 public:
  // Starts the file of a new run: the file must be missing or empty, or Error says so.
  explicit JsonlWriter(const fs::path& path);

  // Resumes the file of a run from a checkpoint taken after `step`: everything from the first line whose "step" is
  // greater, or that is repeated, on is cut off, and so is an unfinished last line; the resumed run writes them again.
  // A missing file is created. Throws Error naming the path and the line for a line that is not a JSON object; the file
  // is then left as it was.
  static JsonlWriter resume(const fs::path& path, int64_t step);

  // Appends one object as one line, in one piece. NaN and infinity become null, bytes that are no UTF-8
  // U+FFFD. Throws Error naming the path when the disk is full; the file then ends with the line before.
  void write(const nlohmann::json& object);

  // Waits until all lines are on the disk.
  void sync() { file_->sync(); }

 private:
  explicit JsonlWriter(std::unique_ptr<AppendFile> file) : file_(std::move(file)) {}

  std::unique_ptr<AppendFile> file_;
};

}  // namespace headshare
