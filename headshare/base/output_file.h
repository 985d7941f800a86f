// A file that a verb writes where its user says (docs/design/041-what-a-verb-may-replace.md). What exists is replaced
// only with --overwrite, and only a regular file: never a directory, a device, a named pipe or a socket. A symbolic
// link stays, and the file that it leads to is replaced. The constructor checks before the long work; write() checks
// again and replaces nothing that appeared meanwhile.
#pragma once

#include <string>
#include <vector>

#include "headshare/base/file.h"

namespace headshare {

enum class Overwrite { kNo, kYes };

class OutputFile {
 public:
  // `mark`: what our files of this kind have among their first bytes; with one, only a file that has it is replaced.
  // For names that the user did not choose, where any file could stand. Throws Error when nothing may be written.
  OutputFile(fs::path path, Overwrite overwrite, std::string mark = "");

  // Throws Error when one of the files that are read is the one that is written.
  void check_is_none_of(const std::vector<std::string>& inputs) const;

  // Writes the whole file or nothing. Throws Error.
  void write(std::string_view content) const;

  const fs::path& path() const { return path_; }

 private:
  void check() const;
  fs::path target() const;

  fs::path path_;
  Overwrite overwrite_;
  std::string mark_;
};

}  // namespace headshare
