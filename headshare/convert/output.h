// Where a converted model goes: a directory that appears whole or not at all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "headshare/base/file.h"

namespace headshare {

enum class Overwrite { kNo, kYes };

// A kind of directory that may be replaced when overwriting is on.
struct OutputKind {
  std::vector<std::string> files;                     // all that it may hold
  std::function<void(const fs::path&)> check_is_one;  // throws Error unless a directory with these files is one
};

OutputKind headshare_output();     // a model's files
OutputKind hugging_face_output();  // what write_bert() and write_hf_tokenizer() write

// Throws Error when nothing may be written to `path`: it exists, and overwriting is off or what is there is more than
// an output of this kind. Call it before the long work.
void check_output(const fs::path& path, Overwrite overwrite, const OutputKind& kind);

// Lets `write` fill a new directory beside `path` and renames it into place. What stood there is replaced when
// `overwrite` allows.
void write_output(const fs::path& path, Overwrite overwrite, const OutputKind& kind,
                  const std::function<void(const fs::path&)>& write);

}  // namespace headshare
