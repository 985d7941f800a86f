// What results were made of, noted beside them.
#pragma once

#include <string>

#include "headshare/base/file.h"

namespace headshare {

// Notes a fingerprint in `file`. Throws Error with `changed` when an earlier call noted another one: some results
// beside it would be of one thing, some of another.
void note_fingerprint(const fs::path& file, const std::string& fingerprint, const std::string& changed);

}  // namespace headshare
