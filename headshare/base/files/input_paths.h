// No output of a call may replace what the call reads (docs/design/041-what-a-verb-may-replace.md).
#pragma once

#include <string>
#include <vector>

#include "headshare/base/files/file.h"

namespace headshare {

// Each is a file, "-" for standard input, or a directory, which stands for the files directly in it: a model, a
// tokenizer's folder. For a directory of texts, which are read at any depth, data/text/text_source.h lists the files.
// A path that does not exist, and "", counts for nothing.
using InputPaths = std::vector<std::string>;

// Tells whether `file` is one of the files that are read, under whatever name.
bool reads_file(const InputPaths& inputs, const fs::path& file);

// Tells whether `directory` is one of the directories that are read, or something that is read lies in it.
bool reads_within(const InputPaths& inputs, const fs::path& directory);

}  // namespace headshare
