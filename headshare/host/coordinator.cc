#include "headshare/host/coordinator.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/format.h"
#include "headshare/host/cell_attempt.h"
#include "headshare/host/exit_later.h"
#include "headshare/host/plan_file.h"

namespace headshare {
namespace {

// So often a cell may lose its machine, or be stopped by somebody else, without coming further.
constexpr int kMostLosses = 3;
constexpr std::chrono::seconds kRest(5);

class Coordinator {
 public:
  explicit Coordinator(const Coordination& with)
      : with_(with), cells_(with.gathering.plans().size(), Watched{.watch = LeaseWatch(with.timing)}) {
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (const std::optional<Lease> last = lease_of(i)) cells_[i].first_new = last->number + 1;
      if (with_.gathering.is_finished(i)) sweep(i);
    }
  }

  void run() {
    while (with_.gathering.open() > 0) {
      start_ready();
      for (const EndedCell& ended : with_.engine.poll(with_.engine.pause())) settle(ended);
      look_at_files();
      if (!with_.stop_requested()) continue;
      with_.engine.stop();
      for (size_t i = 0; i < cells_.size(); ++i) take(i);  // a cell may have ended well meanwhile
      throw Interrupted("stopped");
    }
  }

 private:
  enum class State {
    kWaiting,    // for the engine's room, or for another cell's weights
    kStarted,    // in the engine
    kEnded,      // its job has ended, and the files do not show yet what it did
    kElsewhere,  // another process works on it
  };

  struct Watched {
    State state = State::kWaiting;
    LeaseWatch watch;
    int64_t first_new = 1;  // leases from this number on are of this call
    int losses = 0;         // since it last came further
    int64_t farthest = 0;   // the step
    std::chrono::steady_clock::time_point not_before = {};
    EndedCell ended = {};  // while its files are waited for
    std::chrono::steady_clock::time_point patience = {};
  };

  const CellPlan& plan(size_t cell) const { return with_.gathering.plans()[cell]; }
  std::optional<Lease> lease_of(size_t cell) const {
    return last_lease(plan_folder(with_.home), plan(cell).directory());
  }

  // Tells whether the weights that a cell takes are there; a cell whose weights will never be there fails.
  bool is_ready(size_t cell) {
    if (!with_.gathering.is_open(cell)) return false;
    if (std::chrono::steady_clock::now() < cells_[cell].not_before) return false;
    const std::optional<size_t> needed = with_.gathering.weights_of(cell);
    if (!needed || with_.gathering.is_finished(*needed)) return true;
    if (!with_.gathering.is_open(*needed)) {
      with_.gathering.begin(cell);
      with_.gathering.fail(cell,
                           join_text("needs the weights of ", plan(*needed).key.variant, ", which was not trained"));
    }
    return false;
  }

  void start_ready() {
    std::vector<size_t> starting;
    const size_t room = with_.engine.room();
    for (size_t i = 0; i < cells_.size() && starting.size() < room; ++i) {
      if (cells_[i].state != State::kWaiting || take(i) || !is_ready(i)) continue;
      cells_[i].state = State::kStarted;
      starting.push_back(i);
      with_.gathering.begin(i);
    }
    if (!starting.empty()) with_.engine.start(starting);
  }

  bool take(size_t cell) {
    if (with_.gathering.is_finished(cell)) return true;
    if (!with_.gathering.is_open(cell) || !with_.gathering.take(cell)) return false;
    sweep(cell);
    return true;
  }

  void sweep(size_t cell) {
    sweep_attempts(with_.home, plan(cell).key);
    sweep_leases(plan_folder(with_.home), plan(cell).directory());
  }

  void settle(const EndedCell& ended) {
    Watched& cell = cells_[ended.cell];
    const bool waited_for = std::exchange(cell.state, State::kWaiting) == State::kEnded;
    if (!with_.gathering.is_open(ended.cell) || take(ended.cell)) return;
    const std::optional<Lease> lease = lease_of(ended.cell);
    const bool signed_here = lease && lease->number >= cell.first_new;
    if (ended.code == kExitLater) {
      // Whoever works on it is watched; a machine that does not see its weights yet is asked again after a moment.
      if (lease && lease->state == LeaseState::kRunning) cell.state = State::kElsewhere;
      cell.not_before = std::chrono::steady_clock::now() + kRest;
      return;
    }
    if (signed_here && lease->state == LeaseState::kFailed) return fail(ended.cell, *lease);
    const bool stopped = signed_here && lease->state == LeaseState::kStopped;
    if (signed_here && lease->progress.step > cell.farthest) {
      cell.farthest = lease->progress.step;  // a long cell is stopped at each time limit, and goes on
      cell.losses = 0;
    }
    HS_CHECK(!ended.unshared, sentence_of(ended), " and left nothing in ", with_.home.string(),
             ": is that folder on a file system that ", ended.machine, " shares?");
    if (ended.lost || stopped) return lose(ended);
    if (!ended.machine.empty() && may_appear(ended, waited_for)) return;
    // A program that refuses to begin, or cannot, says nothing of the cell: another machine may do better.
    if (!ended.machine.empty() && !signed_here && ended.code > 0) return lose(ended);
    with_.gathering.fail(ended.cell, sentence_of(ended));
  }

  void lose(const EndedCell& ended) {
    if (++cells_[ended.cell].losses >= kMostLosses) return with_.gathering.fail(ended.cell, sentence_of(ended));
    notice(join_text(plan(ended.cell).directory(), " lost its machine, or was stopped: ", sentence_of(ended),
                     "; it is started again"));
  }

  // A network file system may show what a cell did a while after its job has ended. Tells whether that while lasts.
  bool may_appear(const EndedCell& ended, bool waited_for) {
    Watched& cell = cells_[ended.cell];
    const auto now = std::chrono::steady_clock::now();
    if (!waited_for) {
      const std::chrono::duration<double> longest(with_.timing.stale_seconds());
      cell.ended = ended;
      cell.patience = now + std::chrono::duration_cast<std::chrono::steady_clock::duration>(longest);
      if (!std::exchange(said_waiting_, true)) {
        notice(join_text(ended.job, " on ", ended.machine, " has ended, and ", with_.home.string(),
                         " does not show what became of ", plan(ended.cell).directory(),
                         "; a network file system may be late: this is waited for, up to ",
                         format_duration(longest.count())));
      }
    }
    if (now >= cell.patience) return false;
    cell.state = State::kEnded;
    return true;
  }

  static std::string sentence_of(const EndedCell& ended) {
    const std::string how = ended.how.empty() ? "its process ended well but left no cell.json" : ended.how;
    if (ended.machine.empty()) return how;
    return join_text(ended.job, " on ", ended.machine, ": ", how);
  }

  void fail(size_t cell, const Lease& lease) {
    with_.gathering.fail(cell, lease.reason);
    cells_[cell].first_new = lease.number + 1;
  }

  // Looks at the cells that somebody works on.
  void look_at_files() {
    std::vector<RunningCell> running;
    const fs::path folder = plan_folder(with_.home);
    const std::map<std::string, int64_t> newest = newest_leases(folder);
    for (size_t i = 0; i < cells_.size(); ++i) {
      Watched& cell = cells_[i];
      if (cell.state == State::kWaiting || !with_.gathering.is_open(i) || take(i)) continue;
      if (cell.state == State::kEnded) {
        settle(EndedCell(cell.ended));
        continue;
      }
      std::optional<Lease> lease;
      if (const auto found = newest.find(plan(i).directory()); found != newest.end()) {
        lease = lease_numbered(folder, found->first, found->second);
      }
      const bool works = lease && lease->state == LeaseState::kRunning && !lease->damaged;
      const bool stale = !lease || cell.watch.look(*lease) == LeaseWatch::Verdict::kStale;
      say_clock(cell, lease);
      if (works && !stale) running.push_back({.cell = i, .progress = lease->progress});
      if (cell.state != State::kElsewhere || !stale) continue;
      cell.state = State::kWaiting;
      if (lease && lease->state == LeaseState::kFailed && lease->number >= cell.first_new) fail(i, *lease);
    }
    with_.observer.on_progress(with_.gathering.plans(), running, cells_.size() - with_.gathering.open());
  }

  void say_clock(Watched& cell, const std::optional<Lease>& lease) {
    const std::optional<double> difference = cell.watch.clock_difference();
    if (!difference || !lease || !said_of_.insert(lease->owner.host).second) return;
    notice(join_text("the clock of ", lease->owner.host, " is ", format_duration(std::abs(*difference)),
                     *difference > 0 ? " ahead" : " behind", "; nothing here depends on it, but times of files do"));
  }

  const Coordination& with_;
  std::vector<Watched> cells_;
  std::set<std::string> said_of_;  // hosts whose clock was mentioned
  bool said_waiting_ = false;      // that files are waited for
};

}  // namespace

void run_open_cells(const Coordination& with) { Coordinator(with).run(); }

}  // namespace headshare
