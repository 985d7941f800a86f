// Several processes, on several machines, may want to work on one cell of a comparison. A lease says which of them
// does, how far it is and how it ended.
//
// A cell's leases are files DIR/plan/NAME.lease-1, NAME.lease-2, ... The highest number owns the cell. To claim a cell
// a process creates the file of the next number, which the file system lets only one process do (a hard link, also on
// NFS); no lease is ever deleted before there is a higher one. Before an owner publishes what it did it claims the cell
// once more. Where that fails it was overtaken, and nothing of it is published, however late it notices.
//
// While an owner works it writes its lease anew, every beat, with a number that grows. Whoever watches a lease uses its
// own clock alone: clocks of two machines are not compared.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "headshare/base/files/file.h"

namespace headshare {

// This tells the process that owns a lease from all others.
struct LeaseOwner {
  std::string host;  // the machine's name, for people
  // Equal for processes that see each other: the boot and the namespace of processes; "" where these are not known.
  std::string machine;
  int64_t process = 0;
  int64_t started = 0;  // when, in ticks since the boot: numbers of processes are used again
  std::string job;      // the name that an engine gave the work, for people: "slurm 12_3"

  bool operator==(const LeaseOwner&) const = default;
};

LeaseOwner this_process(const std::string& job);

struct CellProgress {
  std::string doing;  // "reading", "training", "evaluating", "publishing"
  int64_t step = 0;
  int64_t total_steps = 0;
  double loss = 0;
  double tokens_per_second = 0;
};

enum class LeaseState { kRunning, kFinished, kFailed, kStopped };

struct Lease {
  int64_t number = 0;
  std::string comparison = {};  // the id of the plan that it belongs to
  std::string claim = {};       // of this claim alone
  LeaseOwner owner = {};
  LeaseState state = LeaseState::kRunning;
  std::string reason = {};  // why the cell failed, in a sentence
  int64_t beat = 0;
  double clock = 0;  // the owner's, in seconds since 1970: only to notice that clocks differ
  CellProgress progress = {};
  bool damaged = false;  // the file holds something else; only `number` is known
};

// Returns the lease of the highest number, or nothing. A file that holds no lease is a damaged one: its owner is
// unknown.
std::optional<Lease> last_lease(const fs::path& folder, const std::string& cell);

// Returns the highest number of a lease of each cell. One listing serves all cells: a folder of a thousand cells has
// two thousand files, and is looked at each second.
std::map<std::string, int64_t> newest_leases(const fs::path& folder);

// Returns the lease of that number, a damaged one where the file holds none.
Lease lease_numbered(const fs::path& folder, const std::string& cell, int64_t number);

// Reads one lease. Throws Error naming the file where it holds something else.
Lease read_lease(const fs::path& file, int64_t number);

// Removes the leases of a finished cell but for the last, and what killed processes left of them.
void sweep_leases(const fs::path& folder, const std::string& cell);

// Returns "host s1, process 412 (slurm 12_3)".
std::string described(const LeaseOwner& owner);

// A LeaseTiming says how often owners beat, and how many beats may fail to come.
struct LeaseTiming {
  double beat_seconds = 1;
  int64_t beats_to_wait = 90;  // a network file system may show a change a minute late

  double stale_seconds() const { return beat_seconds * static_cast<double>(beats_to_wait); }
};

// Returns the timing of this program: a beat is $HEADSHARE_BEAT seconds, or 1. Throws Error where that is no time.
LeaseTiming lease_timing();

// A LeaseWatch learns whether the owner of a lease is alive.
class LeaseWatch {
 public:
  explicit LeaseWatch(LeaseTiming timing) : timing_(timing) {}

  enum class Verdict { kAlive, kStale, kUnknown };

  // Tells what is known after this look: an owner is alive once its beat has changed while it was watched, and stale
  // where the beat did not change for so long, where its process on this machine is gone, or where it says that it
  // ended.
  Verdict look(const Lease& lease);

  // Returns the difference between the owner's clock and this machine's where it is large, and was not returned before.
  std::optional<double> clock_difference();

 private:
  LeaseTiming timing_;
  std::optional<Lease> last_;
  std::chrono::steady_clock::time_point changed_;
  bool alive_ = false;
  std::optional<double> difference_;
  bool said_ = false;
};

// A HeldLease is a lease of this process, which it keeps alive from a thread.
class HeldLease {
 public:
  struct Claim {
    fs::path folder;
    std::string cell;
    std::string comparison = {};  // the id of the plan
    std::string job = {};
    LeaseTiming timing = {};
    // Tells whether the cell is planned no more, because its comparison was begun anew or deleted: whoever owns it is
    // overtaken then. Asked at every beat, from the thread; must not throw.
    std::function<bool()> withdrawn = [] { return false; };
  };

  // Claims the cell above `last`; returns nullptr where another process was faster. Throws Error where nothing can be
  // written.
  static std::unique_ptr<HeldLease> claim(const Claim& claim, const std::optional<Lease>& last);

  ~HeldLease();
  HeldLease(const HeldLease&) = delete;
  HeldLease& operator=(const HeldLease&) = delete;

  int64_t number() const;
  void show(const CellProgress& progress);

  // Tells whether another process overtook this one, as far as the thread has noticed.
  bool lost() const;

  // Claims the cell once more; returns false where another process overtook this one.
  bool renew();

  // Ends the lease; returns false, and notes nothing, where another process overtook this one. Nobody beats any more. A
  // disk that refuses to note the end does not hide how the cell ended.
  bool end(LeaseState state, const std::string& reason = "");

 private:
  HeldLease(Claim claim, Lease lease);
  void beat();
  void write();
  void stop_beating();

  Claim claim_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  Lease lease_;
  bool lost_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace headshare
