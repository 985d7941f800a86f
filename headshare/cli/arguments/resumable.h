// Some verbs keep the options of a call in a directory, and go on there with --resume.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "headshare/cli/arguments/args.h"
#include "headshare/host/launch.h"
#include "headshare/host/resolved_file.h"

namespace headshare {

// One command began in a directory, and the other goes on with it.
template <Resumable Command>
struct Resumed {
  Command began;
  Command command;  // the options of `began`, with those of this call on top
};

// These options may change when a call goes on; every other one would make it another run.
struct ResumeRules {
  std::set<std::string> free;  // names of options
  std::string what;            // the thing that was begun, for messages: "the run in out"
};

// Reads the earlier call in `out`, which process 0 reads for all; `typed` is this call. Throws UsageError where nothing
// began in `out`, for --config, which would be a third source, and for an option that rules.free lacks and that has
// another value than the earlier call began with.
template <Resumable Command>
Resumed<Command> resumed(const Arguments& typed, const std::string& out, const ResumeRules& rules) {
  Resumed<Command> both;
  OptionGroups before = both.began.groups();
  read_resolved(before, Command::kVerb, out, run_processes());
  if (typed.configured()) {
    throw UsageError("--resume reads " + (fs::path(out) / kResolvedFile).string() + "; leave --config out");
  }
  both.command = both.began;
  Arguments now = arguments_of(both.command);
  now.repeat(typed);
  // The file has the threads of process 0, whose machine may have more cores.
  if (!leads(run_processes()) && !typed.given("threads")) both.command.runtime.threads.reset();
  both.began.make_paths_whole();
  both.command.make_paths_whole();
  refuse_changed(to_json(before), now.values(), rules.free, rules.what);
  return both;
}

// Throws UsageError where a call both goes on with an earlier one and forgets it.
template <Resumable Command>
void check_resume(const Command& command) {
  if (command.resume && command.overwrite) throw UsageError("--resume and --overwrite exclude each other");
}

// Throws UsageError where a call goes on with `what` and only plans: the options of what goes on are not read yet.
template <Resumable Command>
void check_dry_run(const Command& command, const std::string& what) {
  if (!command.resume || !command.dry_run) return;
  throw UsageError(join_text("--resume takes the options of the ", what,
                             " in --out, and --dry-run shows those of a new one; leave one out"));
}

// Returns the words that go on with what a command has begun. Its call, `typed`, may have options of this process.
template <Resumable Command>
Words resuming_words(const Command& command, const Arguments& typed) {
  Words words = {"--resume", "--out", command.out};
  if (command.json) words.emplace_back("--json");
  const nlohmann::json values = typed.values();
  for (const std::string& name : options_of_a_process()) {
    if (!typed.given(name) || values.at(name).is_null()) continue;
    const nlohmann::json& value = values.at(name);
    words.push_back(join_text("--", name, "=", value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return words;
}

// Does `work`, the command's. Where it is interrupted, or a process of the run is lost, and there is something to go on
// with, the message says how.
template <Resumable Command>
int work_resumably(const Command& command, const std::function<int()>& work) {
  const auto with_way_on = [&](const std::exception& reason) {
    const bool begun = path_exists(fs::path(command.out) / kResolvedFile);
    const std::string way = join_text("; continue with: headshare ", Command::kVerb, " --resume --out ", command.out);
    return reason.what() + (begun ? way : "");
  };
  try {
    return work();
  } catch (const Interrupted& stopped) {
    throw Interrupted(with_way_on(stopped));
  } catch (const ProcessLost& lost) {
    throw ProcessLost(with_way_on(lost));
  }
}

}  // namespace headshare
