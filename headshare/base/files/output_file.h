// Writes a file where the user of a verb says (docs/design/041-what-a-verb-may-replace.md). An existing file is
// replaced only with --overwrite, and only a regular file: never a directory, a device, a named pipe or a socket. A
// symbolic link stays, and the file that it leads to is replaced. The constructor checks before the long work; write()
// checks again and replaces nothing that appeared meanwhile. What the call reads is never replaced.
#pragma once

#include <string>

#include "headshare/base/files/file.h"
#include "headshare/base/files/input_paths.h"

namespace headshare {

enum class Overwrite { kNo, kYes };

class OutputFile {
 public:
  // `inputs` is all that the call reads (base/files/input_paths.h). `mark` is what our files of this kind have among
  // their first bytes; with one, only a file that has it is replaced. It is for names that the user did not choose,
  // where any file could stand. Throws Error when nothing may be written.
  OutputFile(fs::path path, Overwrite overwrite, InputPaths inputs, std::string mark = "");

  // Writes the whole file or nothing. Throws Error.
  void write(std::string_view content) const;

  const fs::path& path() const { return path_; }

 private:
  void check() const;
  fs::path target() const;

  fs::path path_;
  Overwrite overwrite_;
  InputPaths inputs_;
  std::string mark_;
};

}  // namespace headshare
