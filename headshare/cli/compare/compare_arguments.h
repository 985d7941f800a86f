// What `headshare compare` is asked for, and what an earlier call of it was.
#pragma once

#include "headshare/cli/arguments/args.h"
#include "headshare/cli/arguments/runtime_options.h"
#include "headshare/compare/comparison_call.h"

namespace headshare {

struct CompareCommand {
  std::string out = "comparison";
  bool resume = false;
  bool overwrite = false;
  bool dry_run = false;
  bool beyond_a_day = false;
  bool json = false;
  bool latex = false;
  bool adds = false;  // schemes or seeds to a comparison that an earlier call began
  ComparisonOptions comparison;
  RuntimeOptions runtime;

  Arguments arguments();

  // `line` is the command as the user typed it.
  ComparisonCall call(const std::string& line) const;
};

// The command of a directory that an earlier call began, with its options and `words` on top. Throws UsageError where
// there is none, and for options that finished models would not know of: only schemes, variants and seeds may be added.
CompareCommand resumed_command(const Words& words, const std::string& out);

// Writes resolved.yaml into `home`: what repeats the command there or anywhere else.
void write_resolved(CompareCommand command, const fs::path& home);

}  // namespace headshare
