// A call writes the file resolved.yaml into its directory: it has every option, so that the call can be repeated and
// gone on with.
#pragma once

#include <concepts>
#include <set>
#include <string>

#include "headshare/base/files/output_mark.h"
#include "headshare/host/runtime_options.h"
#include "headshare/host/settings_file.h"
#include "headshare/train/reducer.h"

namespace headshare {

// Options of a Resumable command are kept in a directory: `headshare train` and the like.
template <class Command>
concept Resumable = requires(Command command) {
  { Command::kVerb } -> std::convertible_to<std::string>;
  { command.out } -> std::convertible_to<std::string>;
  { command.groups() } -> std::same_as<OptionGroups>;
  { command.runtime } -> std::convertible_to<RuntimeOptions>;
  command.forget_call();       // drops facts about this call alone: --resume, --overwrite, --json
  command.make_paths_whole();  // lets files and models be found again from any directory
};

// Reads into `groups`, fresh ones of `verb`, the options that the call in `out` was begun with. Throws UsageError when
// nothing was begun there, when another verb began there, and for options that resolved.yaml lacks because it was cut
// short. Options that came with a later version than the one that wrote it take their defaults, and a notice names
// them. Process 0 of several reads the file for all: the others need not share its disk.
void read_resolved(OptionGroups& groups, const std::string& verb, const std::string& out,
                   Reducer& processes = one_process());

// Writes resolved.yaml into `home`, so that the command can be repeated there or anywhere else. Returns the options as
// one object.
template <Resumable Command>
nlohmann::json write_resolved(Command lasting, const fs::path& home) {
  lasting.forget_call();
  lasting.runtime.threads = threads_in_use();  // results repeat to the last bit for a number of threads
  lasting.make_paths_whole();
  const OptionGroups groups = lasting.groups();
  write_settings(home / kResolvedFile, Command::kVerb, groups);
  return to_json(groups);
}

// Throws UsageError for the first option outside `free` whose value differs from the earlier call's. `what` names what
// was begun: "the run in out".
void refuse_changed(const nlohmann::json& began, const nlohmann::json& now, const std::set<std::string>& free,
                    const std::string& what);

// Gives a notice where the number of threads differs, because sums are then formed in another order.
void note_other_threads(const RuntimeOptions& began, const RuntimeOptions& now);

// Returns the path as it is found from any directory; "" and "-", standard input, stay what they are.
std::string whole_path(const std::string& path);

}  // namespace headshare
