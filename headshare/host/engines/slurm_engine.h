// The engine `slurm` runs the cells of a comparison as job arrays of a Slurm cluster: `--workers slurm:partition=gpu`.
//
// It calls sbatch, squeue and scancel, and needs no accounting database. Each array has a folder DIR/jobs/ID with the
// script that Slurm runs and a log for each cell, INDEX.txt. A job that does not find the script there ran on a node
// that does not share DIR: it ended before anything was trained. Nodes where that happens, or where the program cannot
// be started, get no further jobs. Slurm queues the cells of a lost node again by itself; such a cell takes over what
// the lost one did, which may still run unseen.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "headshare/host/engines/slurm_job.h"

namespace headshare {

class SlurmEngine : public Engine {
 public:
  using Run = std::function<CommandResult(const std::vector<std::string>& words)>;

  // Throws Error for options that are none. `run` runs Slurm's commands.
  SlurmEngine(const std::string& options, EngineCall call, Run run = run_command);
  ~SlurmEngine() override;

  size_t room() const override { return SIZE_MAX; }  // Slurm has the queue
  void start(const std::vector<size_t>& cells) override;
  std::vector<EndedCell> poll(std::chrono::duration<double> most) override;
  std::chrono::duration<double> pause() const override { return std::chrono::seconds(1); }
  void stop() override;

 private:
  struct Task {
    size_t cell = 0;
    fs::path log;
    int64_t restarts = 0;
  };
  using Key = std::pair<std::string, size_t>;  // an array and a place in it
  using Clock = std::chrono::steady_clock;

  std::string submit(const std::vector<size_t>& cells, const std::string& before);
  std::vector<std::string> words_of(size_t cells, const std::string& name, const std::string& before) const;
  std::vector<std::string> estimated_words() const;
  std::optional<std::vector<QueuedTask>> queue();
  void hear(const QueuedTask& seen, Task* task);
  EndedCell ended(const QueuedTask& seen, const Task& task);
  std::string arrays() const;  // those with unfinished tasks, "12,13"
  bool asks_for(const std::vector<std::string>& options) const;
  bool cancel_unanswered();
  void note_once(const std::string& note);

  SlurmOptions options_;
  EngineCall call_;
  Run run_;
  std::map<Key, Task> tasks_;
  std::vector<size_t> waiting_;       // cells that Slurm could not take yet
  std::set<std::string> unanswered_;  // names of arrays that Slurm may have taken, without an answer
  std::set<std::string> bad_nodes_;   // no cell can be started there
  std::set<std::string> noted_;
  bool shared_ = false;  // a job has left a log in DIR
  Clock::time_point began_ = Clock::now();
  Clock::time_point next_look_ = Clock::now();
};

}  // namespace headshare
