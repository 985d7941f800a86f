// A converted model goes into a directory that appears whole or not at all.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headshare/base/files/made_directories.h"
#include "headshare/base/files/output_file.h"

namespace headshare {

// A kind of directory that may be replaced when overwriting is on.
struct OutputKind {
  std::vector<std::string> files;                     // all that it may hold
  std::function<void(const fs::path&)> check_is_one;  // throws Error unless a directory with these files is one
};

OutputKind headshare_output();  // a model's files

class OutputDirectory {
 public:
  // Checks before the long work. `inputs` is all that the call reads. Throws Error when nothing may be written to
  // `path`: it exists and overwriting is off, something is read there, or what is there is more than an output of this
  // kind; or another process is writing it. A link to a directory stays, and the directory is replaced.
  OutputDirectory(const fs::path& path, Overwrite overwrite, OutputKind kind, const InputPaths& inputs);

  // Deletes what was not finished, and only that.
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  // Creates the directory that will have the name `path`, beside it. From here on other processes are refused.
  void begin();

  // Lets `fill` fill the directory, begun here at the latest, and renames it into place. What stands there is replaced
  // when overwriting is on and it is an output of this kind; what appeared meanwhile stays. Throws Error.
  void write(const std::function<void(const fs::path&)>& fill);

 private:
  void check_name(const InputPaths& inputs) const;
  void check_writers() const;
  void check_replaceable(const fs::path& there) const;
  void replace() const;
  void make_partial();
  bool holds_partial() const;  // partial_ is the directory that this object made

  fs::path path_;    // as the user named it
  fs::path target_;  // what it leads to
  Overwrite overwrite_;
  OutputKind kind_;
  fs::path partial_;
  std::optional<MadeDirectories> parents_;  // once it has begun
  int descriptor_ = -1;                     // of partial_: its lock says that this process is alive
};

}  // namespace headshare
