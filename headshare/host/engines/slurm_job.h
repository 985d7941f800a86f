// This header has what the engine `slurm` hands to Slurm's commands and reads from them: options, the script of a job,
// lines of squeue, logs of jobs.
#pragma once

#include <string>
#include <vector>

#include "headshare/host/command.h"
#include "headshare/host/engine.h"

namespace headshare {

// The script of a job ends so, of itself or of its shell, where the cell has not begun.
inline constexpr int kExitNoScript = 72;     // the node has another folder under its folder's name
inline constexpr int kExitNotStarted = 126;  // the program is not for this machine
inline constexpr int kExitNoProgram = 127;

// These are the options behind `slurm:`. All but `throttle` are long options of sbatch: "partition=gpu,exclusive"
// stands for --partition=gpu --exclusive. A backslash before a comma makes it part of a value.
struct SlurmOptions {
  size_t throttle = 0;             // cells that may run at once; 0: as many as Slurm lets run
  std::vector<std::string> words;  // for sbatch
};

// Throws Error for text that is no list of options.
SlurmOptions parse_slurm_options(const std::string& text);

// A QueuedTask is a line of squeue about a task of an array.
struct QueuedTask {
  std::string job;       // the number of the array
  size_t task = 0;       // its place in the array
  std::string state;     // "RUNNING"
  int status = 0;        // as waitpid() gives it
  int64_t restarts = 0;  // how often Slurm queued it again
  std::string node;
  std::string reason;

  std::string name() const { return job + "_" + std::to_string(task); }
};

// Reads what squeue prints for us; lines that are none of a task of an array are passed over.
std::vector<QueuedTask> parse_queue(const std::string& text);

// Returns the script that Slurm runs for each of these cells. It stands in `folder`, where the logs go.
std::string slurm_script(const EngineCall& call, const fs::path& folder, const std::vector<size_t>& cells);

// The script has this name, and log_of() is the log of a cell.
inline constexpr const char* kSlurmScript = "script.sh";
fs::path log_of(const fs::path& folder, size_t cell);

// A JobLog is what the job of a cell wrote.
struct JobLog {
  bool found = false;
  std::string last;  // its last error, else its last line
  std::vector<std::string> notes;
};

JobLog read_job_log(const fs::path& path);

// Tells whether Slurm took the cell from its node, or its time is over: the cell itself did nothing wrong.
bool was_taken(const QueuedTask& seen);

// Returns how a job ended, for people; "" where it ended well.
std::string how_it_ended(const QueuedTask& seen, const JobLog& log, const fs::path& program);

// Returns what one of Slurm's commands says, without its name.
std::string message_of(const CommandResult& result);

}  // namespace headshare
