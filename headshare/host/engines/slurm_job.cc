#include "headshare/host/engines/slurm_job.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "headshare/base/error.h"
#include "headshare/base/strings/number.h"
#include "headshare/base/strings/shell_word.h"

namespace headshare {
namespace {

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \n") + 1 - begin);
}

std::vector<std::string> cut(const std::string& text, char mark) {
  std::vector<std::string> parts(1);
  for (const char one : text) {
    if (one == mark) {
      parts.emplace_back();
    } else {
      parts.back() += one;
    }
  }
  return parts;
}

}  // namespace

bool was_taken(const QueuedTask& seen) {
  static const std::set<std::string> taken = {"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED", "TIMEOUT"};
  return taken.contains(seen.state);
}

SlurmOptions parse_slurm_options(const std::string& text) {
  SlurmOptions options;
  if (text.empty()) return options;
  std::string rest = text;
  for (size_t at = 0; (at = rest.find("\\,", at)) != std::string::npos;) rest.replace(at, 2, 1, '\0');
  for (std::string one : cut(rest, ',')) {
    std::replace(one.begin(), one.end(), '\0', ',');
    const std::string name = one.substr(0, one.find('='));
    HS_CHECK(
        !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos && name[0] != '-',
        "--workers slurm:", text, " has the option '", one,
        "'; write long options of sbatch without --, such as slurm:partition=gpu,time=2:00:00,mem=8G, and \\, for a "
        "comma inside a value");
    if (name != "throttle") {
      options.words.push_back(join_text("--", one));
      continue;
    }
    const auto most = number_in<size_t>(one.substr(std::min(one.size(), name.size() + 1)));
    HS_CHECK(most && *most > 0, "--workers slurm:", text, " has '", one,
             "'; throttle=N lets N cells run at once, with N of at least 1");
    options.throttle = *most;
  }
  return options;
}

std::vector<QueuedTask> parse_queue(const std::string& text) {
  std::vector<QueuedTask> tasks;
  for (const std::string& line : cut(text, '\n')) {
    std::vector<std::string> parts = cut(line, '|');
    if (parts.size() < 7) continue;
    for (std::string& one : parts) one = trimmed(one);
    const auto place = number_in<size_t>(parts[1]);
    if (parts[0].empty() || !place) continue;
    tasks.push_back({.job = parts[0],
                     .task = *place,
                     .state = parts[2],
                     .status = number_in<int>(parts[3]).value_or(0),
                     .restarts = number_in<int64_t>(parts[4]).value_or(0),
                     .node = parts[5],
                     .reason = parts[6]});
  }
  return tasks;
}

std::string slurm_script(const EngineCall& call, const fs::path& folder, const std::vector<size_t>& cells) {
  std::string script =
      "#!/bin/sh\n# headshare wrote this; Slurm runs it once for each cell.\ncase $SLURM_ARRAY_TASK_ID in\n";
  for (size_t place = 0; place < cells.size(); ++place) {
    script += join_text(place, ") log=", shell_word(log_of(folder, cells[place]).string()), "; set --");
    for (const std::string& word : cell_words(call, cells[place])) script.append(" ").append(shell_word(word));
    script += " ;;\n";
  }
  return script + join_text(R"(esac
# Where the script is missing, this node has another folder under that name.
test -f )",
                            shell_word((folder / kSlurmScript).string()), " || exit ", kExitNoScript, R"(
exec >>"$log" 2>&1
name=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
echo "job $name on $SLURMD_NODENAME"
# Slurm queued this job again: it has given up the node where the job ran.
if test "${SLURM_RESTART_COUNT:-0}" -gt 0; then set -- "$@" --take-over; fi
exec )",
                            shell_word(call.program.string()), R"( "$@" --job "job $name"
)");
}

fs::path log_of(const fs::path& folder, size_t cell) { return folder / (std::to_string(cell) + ".txt"); }

JobLog read_job_log(const fs::path& path) {
  JobLog log{.found = path_exists(path), .last = "", .notes = {}};
  if (!log.found) return log;
  std::string last_error;
  for (const std::string& line : cut(read_file(path), '\n')) {
    constexpr std::string_view kError = "error: ";
    constexpr std::string_view kNote = "note: ";
    if (line.starts_with("job ")) last_error.clear();  // the script begins so, again where Slurm queued it again
    if (line.starts_with(kError)) last_error = line.substr(kError.size());
    if (line.starts_with(kNote)) log.notes.push_back(line.substr(kNote.size()));
    if (!line.empty()) log.last = line.starts_with(kNote) ? log.notes.back() : line;
  }
  if (!last_error.empty()) log.last = last_error;
  return log;
}

std::string how_it_ended(const QueuedTask& seen, const JobLog& log, const fs::path& program) {
  if (seen.state == "COMPLETED") return "";
  if (seen.node.empty() && seen.state == "FAILED") return join_text("Slurm refused it: ", seen.reason);
  if (seen.state == "CANCELLED") return "it was cancelled";
  if (seen.state == "TIMEOUT") return "it reached its time limit (--workers slurm:time=2:00:00 gives more)";
  if (was_taken(seen)) return join_text("Slurm says ", seen.state);
  if (seen.state == "OUT_OF_MEMORY" || (WIFSIGNALED(seen.status) && WTERMSIG(seen.status) == SIGKILL)) {
    return join_text("it was killed, as happens to a job that needs more memory than it was given (", seen.state,
                     "; --workers slurm:mem=8G gives more)");
  }
  if (!log.found) return join_text("it ended with ", ended_with(seen.status));
  const int code = WIFEXITED(seen.status) ? WEXITSTATUS(seen.status) : 0;
  if (code == kExitNotStarted || code == kExitNoProgram) {
    return join_text(program.string(), " cannot be started there (", log.last, "); nodes need it under that name");
  }
  return log.last;
}

// Slurm's commands begin their messages with their names.
std::string message_of(const CommandResult& result) {
  std::string message;
  for (std::string line : cut(result.error, '\n')) {
    for (const char* lead : {"sbatch: ", "squeue: ", "scancel: ", "slurm_load_jobs ", "error: "}) {
      if (line.starts_with(lead)) line.erase(0, std::string(lead).size());
    }
    if (!line.empty()) message += (message.empty() ? "" : "; ") + line;
  }
  return message.empty() ? ended_with(result.status) : message;
}

}  // namespace headshare
