// Going on with what an earlier call began: its directory keeps every option in one file.
#pragma once

#include <string>

#include "headshare/cli/args.h"

namespace headshare {

inline constexpr const char* kResolvedFile = "resolved.yaml";

// The words of a call with `--resume`: what the call in `out` was begun with, then the words of this one. Throws
// UsageError when nothing was begun there, and for --config, which would be a third source.
Words resumed_words(const Words& words, const std::string& out);

// The path as it is found from any directory; "" and "-", standard input, stay what they are.
std::string whole_path(const std::string& path);

}  // namespace headshare
