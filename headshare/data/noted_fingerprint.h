// A fingerprint notes, beside results, what they were made of.
#pragma once

#include <string>

#include "headshare/base/files/file.h"

namespace headshare {

// Notes a fingerprint in `file`. Throws Error with `changed` when an earlier call noted another one; otherwise the
// results beside it would come from two different things.
void note_fingerprint(const fs::path& file, const std::string& fingerprint, const std::string& changed);

}  // namespace headshare
