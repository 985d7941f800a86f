// The file resolved.yaml that a call writes into its directory: every option, so that the call can be repeated and gone
// on with.
#pragma once

#include <concepts>
#include <set>
#include <string>

#include "headshare/base/output_mark.h"
#include "headshare/host/runtime_options.h"
#include "headshare/host/settings_file.h"

namespace headshare {

// A command whose options are kept in a directory: `headshare train` and the like.
template <class Command>
concept Resumable = requires(Command command) {
  { Command::kVerb } -> std::convertible_to<std::string>;
  { command.out } -> std::convertible_to<std::string>;
  { command.groups() } -> std::same_as<OptionGroups>;
  { command.runtime } -> std::convertible_to<RuntimeOptions>;
  command.forget_call();       // facts about this call alone: --resume, --overwrite, --json
  command.make_paths_whole();  // files and models are found again from any directory
};

// Reads into `groups`, fresh ones of `verb`, what the call in `out` was begun with. Throws UsageError when nothing was
// begun there, for what another verb began there, and for options that resolved.yaml lacks because it was cut short.
// Options that came with a later version than the one that wrote it take their defaults, and a notice names them.
void read_resolved(OptionGroups& groups, const std::string& verb, const std::string& out);

// Writes resolved.yaml into `home`: what repeats the command there or anywhere else. Returns the options as one object.
template <Resumable Command>
nlohmann::json write_resolved(Command lasting, const fs::path& home) {
  lasting.forget_call();
  lasting.runtime.threads = threads_in_use();  // results repeat to the last bit for a number of threads
  lasting.make_paths_whole();
  const OptionGroups groups = lasting.groups();
  write_settings(home / kResolvedFile, Command::kVerb, groups);
  return to_json(groups);
}

// Throws UsageError for the first option, but those in `free`, that has another value than the earlier call began with.
// `what` was begun: "the run in out".
void refuse_changed(const nlohmann::json& began, const nlohmann::json& now, const std::set<std::string>& free,
                    const std::string& what);

// A notice where the number of threads differs: sums are formed in another order then.
void note_other_threads(const RuntimeOptions& began, const RuntimeOptions& now);

// The path as it is found from any directory; "" and "-", standard input, stay what they are.
std::string whole_path(const std::string& path);

}  // namespace headshare
