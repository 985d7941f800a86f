// Going on with what an earlier call began: its directory keeps every option in one file.
#pragma once

#include <set>
#include <string>

#include "headshare/base/output_mark.h"
#include "headshare/cli/arguments/args.h"

namespace headshare {

// Reads into `arguments`, fresh ones of the verb, what the call in `out` was begun with. Throws UsageError when nothing
// was begun there, for what another verb began there, and for options that resolved.yaml lacks because it was cut
// short. Options that came with a later version than the one that wrote it take their defaults, and a notice names
// them.
void parse_begun(Arguments* arguments, const std::string& out);

// The same, which parse_begun() has looked at, with the `words` of a call with `--resume` on top. Throws UsageError for
// --config, which would be a third source.
void parse_resumed(Arguments* arguments, const Words& words, const std::string& out);

// Throws UsageError for the first option, but those in `free`, that has another value than the earlier call began with.
// Both are Arguments::values(). `what` was begun: "the run in out".
void refuse_changed(const nlohmann::json& began, const nlohmann::json& now, const std::set<std::string>& free,
                    const std::string& what);

// A notice where the number of threads, an option that both have, differs: sums are formed in another order then.
void note_other_threads(const nlohmann::json& began, const nlohmann::json& now);

// The path as it is found from any directory; "" and "-", standard input, stay what they are.
std::string whole_path(const std::string& path);

}  // namespace headshare
