// This header reads the command line of `headshare compare`.
#pragma once

#include "headshare/cli/arguments/args.h"
#include "headshare/host/compare_command.h"

namespace headshare {

Arguments arguments_of(CompareCommand& command);

// Returns the command of a directory that an earlier call began, with its options and those of `typed` on top. Throws
// UsageError where there is none, and for options that finished models would not know of: only schemes, variants and
// seeds may be added.
CompareCommand resumed_command(const Arguments& typed, const std::string& out);

}  // namespace headshare
