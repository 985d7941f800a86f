// An Engine starts cells somewhere, such as in processes of this machine or in a cluster's queue, and says what became
// of its own processes or jobs. What a cell did is in its files (lease.h, cell_attempt.h).
//
// A new engine is one file, and an entry in the list of engine.cc.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headshare/base/files/file.h"

namespace headshare {

// An engine knows this of the comparison whose cells it runs.
struct EngineCall {
  fs::path program;                       // a headshare program, on every machine
  fs::path home;                          // the comparison's directory, whole
  std::string plan_id;                    // of its plan
  std::vector<std::string> cells;         // the names of all cells of the plan
  int64_t threads = 1;                    // of a cell
  bool gpu = false;                       // a cell computes on a GPU
  std::vector<std::string> devices = {};  // that cells are dealt to; none: each finds its own
  double seconds_per_cell = 0;            // estimated; 0 where it is not known
  double bytes_per_cell = 0;              // of RAM, estimated; 0 where it is not known
  // Hears what the process of a cell says to people.
  std::function<void(size_t cell, const std::string& note)> on_note;
};

// Returns the words behind a program's name that run a cell: cell DIR INDEX --plan-id ID --quiet. The device of a cell
// that is dealt to one is the engine's to add.
std::vector<std::string> cell_words(const EngineCall& call, size_t cell);

// This is how a process or a job ended.
struct EndedCell {
  size_t cell = 0;
  int code = 0;              // the exit code of `headshare cell`; -1 where something else ended it
  std::string how = {};      // "" where it ended well, else a sentence without its point
  bool lost = false;         // the machine failed, and not the cell: it is started again
  bool unshared = false;     // its machine has another folder under the name of the comparison's: nothing was done
  std::string machine = {};  // the machine that it ran on, where that is another one than this
  std::string job = {};      // the engine's name for it, for people: "job 12_3"
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Returns how many further cells it takes now. The coordinator hands out no more, in the order of the plan.
  virtual size_t room() const = 0;
  virtual void start(const std::vector<size_t>& cells) = 0;

  // Waits for `most` or until something ended, whichever comes first, and returns what ended since the last call. A
  // process that is gone without this engine's having been told (a lost node) has ended, too.
  virtual std::vector<EndedCell> poll(std::chrono::duration<double> most) = 0;
  // Returns how long the coordinator may wait between two looks at the files.
  virtual std::chrono::duration<double> pause() const = 0;

  // Asks all cells to stop and waits until they have: they keep their work. The destructor of an engine does so, too.
  virtual void stop() = 0;
};

// An EngineRecord is a kind of engine.
struct EngineRecord {
  std::string name;
  std::string help;           // "local:N", what it does: for --help and for errors
  bool shares_cores = false;  // its cells run on this machine
  // Throws Error for options that it does not take. Returns how many cells run at a time, as far as that is known.
  std::function<size_t(const std::string& options)> at_once;
  std::function<std::unique_ptr<Engine>(const std::string& options, const EngineCall& call)> make;
};

const std::vector<EngineRecord>& engine_records();

// Returns what --workers stands for ("local:2"). Throws Error, with the known engines, for another text.
const EngineRecord& engine_record(const std::string& workers);

size_t cells_at_once(const std::string& workers);
std::unique_ptr<Engine> make_engine(const std::string& workers, const EngineCall& call);

// These are the engines, each in a file of its own.
EngineRecord local_engine();
EngineRecord slurm_engine();

}  // namespace headshare
