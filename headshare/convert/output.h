// Where a converted model goes: a directory that appears whole or not at all.
#pragma once

#include "headshare/base/file.h"
#include "headshare/models/decoder.h"
#include "headshare/text/tokenizer.h"

namespace headshare {

enum class Overwrite { kNo, kYes };

// Throws Error when a model may not be written to `path`: it exists, and overwriting is off or what is
// there is more than a model's three files. Call it before the long work.
void check_output(const fs::path& path, Overwrite overwrite);

// Writes the model under a temporary name beside `path` and renames it into place. A model that stood
// there is replaced when `overwrite` allows. `tokenizer` may be null.
void write_output(const fs::path& path, Overwrite overwrite, const Decoder& model, const Tokenizer* tokenizer);

}  // namespace headshare
