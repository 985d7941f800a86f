// Going on with what an earlier call began: its directory keeps every option in one file.
#pragma once

#include <set>
#include <string>

#include "headshare/base/output_mark.h"
#include "headshare/cli/arguments/args.h"

namespace headshare {

// The words of a call with `--resume`: what the call in `out` was begun with, then the words of this one. Throws
// UsageError when nothing was begun there, and for --config, which would be a third source.
Words resumed_words(const Words& words, const std::string& out);

// Throws UsageError for the first option, but those in `free`, that has another value than the earlier call began with.
// Both are Arguments::values(). `what` was begun: "the run in out".
void refuse_changed(const nlohmann::json& began, const nlohmann::json& now, const std::set<std::string>& free,
                    const std::string& what);

// The path as it is found from any directory; "" and "-", standard input, stay what they are.
std::string whole_path(const std::string& path);

}  // namespace headshare
