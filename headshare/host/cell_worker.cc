#include "headshare/host/cell_worker.h"

#include <sys/prctl.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/compare/cell_run.h"
#include "headshare/compare/method.h"
#include "headshare/host/cell_attempt.h"
#include "headshare/host/devices.h"
#include "headshare/host/explain_error.h"
#include "headshare/host/launch.h"
#include "headshare/host/machine.h"

namespace headshare {
namespace {

// A LeaseObserver shows in the lease how far the work is, and hands on what it hears.
class LeaseObserver : public Observer {
 public:
  LeaseObserver(HeldLease& lease, Observer& listener) : lease_(lease), listener_(listener) {}

  void on_step(const StepReport& report) override {
    progress_ = {.doing = "training",
                 .step = report.step,
                 .total_steps = report.total_steps,
                 .loss = report.loss,
                 .tokens_per_second = report.tokens_per_second};
    lease_.show(progress_);
    listener_.on_step(report);
  }
  void on_evaluation_progress(int64_t done, int64_t total) override {
    progress_.doing = "evaluating";
    lease_.show(progress_);
    listener_.on_evaluation_progress(done, total);
  }

 private:
  HeldLease& lease_;
  Observer& listener_;
  CellProgress progress_;
};

// A NeededWatch learns, while a worker waits for the weights of another cell, whether anybody works on that one.
class NeededWatch {
 public:
  explicit NeededWatch(LeaseTiming timing) : timing_(timing), watch_(timing) {}

  // Tells whether nobody has worked on the cell for as long as an owner may be silent: there is time to start again.
  bool is_abandoned(const std::optional<Lease>& lease) {
    const auto now = std::chrono::steady_clock::now();
    const bool works = lease && watch_.look(*lease) != LeaseWatch::Verdict::kStale;
    if (works) idle_since_.reset();
    if (!works && !idle_since_) idle_since_ = now;
    return !works && std::chrono::duration<double>(now - *idle_since_).count() >= timing_.stale_seconds();
  }

 private:
  LeaseTiming timing_;
  LeaseWatch watch_;
  std::optional<std::chrono::steady_clock::time_point> idle_since_;
};

// A Work is the work on one cell, from the claim to the published result.
class Work {
 public:
  Work(const CellCall& call, PlanFile plan)
      : call_(call),
        plan_(std::move(plan)),
        name_(plan_.cells.at(static_cast<size_t>(call.index))),
        cell_(read_cell_plan(call.home, name_)) {}

  // Tells the other processes where the work on the cell is, once; "": there is none for them.
  void tell_others(const fs::path& attempt) {
    if (!std::exchange(told_, true)) text_of(call_.processes, attempt.string());
  }

  // Takes part in the work of process 0.
  CellEnd follow(const std::function<bool()>& stop_requested) {
    const std::string attempt = text_of(call_.processes, "");
    if (attempt.empty()) return done();
    Observer silent;
    const CellPlace place{.home = call_.home, .own = attempt, .processes = call_.processes};
    const c10::Device device = start();
    check_same_device(call_.processes, device);
    comparison_method(cell_.options).run_cell(cell_, place, device, silent, stop_requested);
    return done();
  }

  CellEnd run(Observer& observer, const std::function<bool()>& stop_requested, NeededWatch* needed) {
    if (is_finished(call_.home, cell_.key)) return done();
    if (cell_.weights_of && !is_finished(call_.home, *cell_.weights_of)) return without_weights(needed);
    const std::string owner = claim(stop_requested);
    if (!owner.empty()) return later("is being worked on by " + owner);
    if (is_finished(call_.home, cell_.key)) {  // somebody finished it while this process waited
      lease_->end(LeaseState::kFinished);
      return done();
    }
    try {
      return work(observer, stop_requested);
    } catch (const Interrupted&) {
      if (!lease_->end(LeaseState::kStopped)) return overtaken();
      throw;
    } catch (const OtherData&) {  // on another machine the cell may succeed
      if (!lease_->end(LeaseState::kStopped, explained(std::current_exception()))) return overtaken();
      throw;
    } catch (const ProcessLost&) {  // the cell itself has not failed
      if (!lease_->end(LeaseState::kStopped)) return overtaken();
      throw;
    } catch (...) {
      const std::string reason = with_full_disk(explained(std::current_exception()));
      if (!lease_->end(LeaseState::kFailed, reason)) return overtaken();
      throw Error(reason);
    }
  }

 private:
  // Starts the device and the threads, which several processes of a machine share.
  c10::Device start() const {
    check_micro_batches(call_.processes, comparison_method(cell_.options).accumulation(cell_.options));
    RuntimeOptions runtime = plan_.runtime;
    if (call_.device) runtime.device = *call_.device;
    if (call_.processes.size() > 1) runtime.threads.reset();
    return start_runtime(runtime);
  }

  CellEnd done() const { return {CellEnd::Kind::kDone, name_ + " is finished"}; }
  CellEnd later(const std::string& why) const { return {CellEnd::Kind::kLater, join_text(name_, " ", why)}; }

  // Throws Error where the weights will never be there.
  CellEnd without_weights(NeededWatch* needed) const {
    const std::string name = cell_directory(*cell_.weights_of);
    std::optional<Lease> last = last_lease(plan_folder(call_.home), name);
    if (last && !last->damaged && last->comparison != plan_.id) last.reset();
    const bool failed = last && last->state == LeaseState::kFailed;
    HS_CHECK(!failed, "needs the weights of ", name, ", which was not trained: ", last ? last->reason : "");
    CellEnd end = later(join_text("needs the weights of ", name, ", which is not finished"));
    end.in_vain = needed->is_abandoned(last);
    if (end.in_vain) end.sentence += join_text(", and nobody works on it; run ", name, " first");
    return end;
  }

  HeldLease::Claim wanted() const {
    return {.folder = plan_folder(call_.home),
            .cell = name_,
            .comparison = plan_.id,
            .job = call_.job,
            .timing = call_.timing,
            .withdrawn = [home = call_.home, id = plan_.id] { return is_withdrawn(home, id); }};
  }

  // Claims the cell once its owner is known to be gone; returns who owns it where it is alive, else "".
  std::string claim(const std::function<bool()>& stop_requested) {
    LeaseWatch watch(call_.timing);
    while (true) {
      if (stop_requested()) throw Interrupted("stopped");
      HS_CHECK(!is_withdrawn(call_.home, plan_.id), "the comparison in ", call_.home.string(),
               " was begun anew, or deleted, meanwhile; run this cell again if it is still planned");
      const std::optional<Lease> last = last_lease(plan_folder(call_.home), name_);
      // The lease of a comparison that was overwritten is nobody's.
      const bool free = !last || call_.take_over || (!last->damaged && last->comparison != plan_.id) ||
                        watch.look(*last) == LeaseWatch::Verdict::kStale;
      if (free) {
        lease_ = HeldLease::claim(wanted(), last);
        if (lease_) return "";  // else another process was faster
      } else if (watch.look(*last) == LeaseWatch::Verdict::kAlive) {
        return described(last->owner);
      }
      std::this_thread::sleep_for(std::chrono::duration<double>(call_.timing.beat_seconds));
    }
  }

  CellEnd work(Observer& observer, const std::function<bool()>& stop_requested) {
    const c10::Device device = start();
    attempt_ = begin_attempt(call_.home, {.key = cell_.key, .comparison = plan_.id, .number = lease_->number()});
    LeaseObserver showing(*lease_, observer);
    if (!path_exists(attempt_ / kCellFile)) {  // else only its publication is missing
      const CellPlace place{
          .home = call_.home, .own = attempt_, .machine = this_machine(device), .processes = call_.processes};
      tell_others(attempt_);
      check_same_device(call_.processes, device);
      comparison_method(cell_.options).run_cell(cell_, place, device, showing, [&] {
        return stop_requested() || lease_->lost();
      });
    }
    if (!lease_->renew() || !publish_attempt(attempt_, call_.home, cell_.key)) return overtaken();
    lease_->end(LeaseState::kFinished);
    sweep_attempts(call_.home, cell_.key);
    sweep_leases(plan_folder(call_.home), name_);
    return done();
  }

  // Another process works on the cell, or finished it. An owner that has claimed the cell may not have begun: until it
  // has a folder of its own it takes over what this process did.
  CellEnd overtaken() {
    if (is_withdrawn(call_.home, plan_.id)) {
      discard(attempt_);
      return later("belongs to a comparison that was begun anew, or deleted; what this process did is removed");
    }
    const bool finished = is_finished(call_.home, cell_.key);
    if (finished || newest_attempt(call_.home, cell_.key, plan_.id) != attempt_) discard(attempt_);
    if (finished) {
      return {CellEnd::Kind::kDone, name_ + " was finished by another process; what this one did is removed"};
    }
    const std::optional<Lease> last = last_lease(plan_folder(call_.home), name_);
    return later(join_text("was taken over by ", last && !last->damaged ? described(last->owner) : "another process",
                           ", as this one did not beat, or was said to be lost"));
  }

  // Says of a full disk, or a quota that is used up, what is lost: nothing.
  static std::string with_full_disk(const std::string& reason) {
    for (const int number : {ENOSPC, EDQUOT}) {
      if (reason.find(std::strerror(number)) == std::string::npos) continue;
      return reason + ". The last checkpoint is kept: make room there, and run this cell again";
    }
    return reason;
  }

  const CellCall& call_;
  PlanFile plan_;
  std::string name_;
  CellPlan cell_;
  std::unique_ptr<HeldLease> lease_;
  fs::path attempt_;
  bool told_ = false;
};

void check_call(const CellCall& call, const PlanFile& plan) {
  HS_CHECK(call.plan_id.empty() || call.plan_id == plan.id, call.home.string(), " holds the plan ", plan.id,
           ", and the cell is one of the plan ", call.plan_id,
           ": this machine has another folder of that name; let all machines share one");
  HS_CHECK(!plan.cells.empty(), call.home.string(), " holds a plan without cells");
  HS_CHECK(call.index >= 0 && static_cast<size_t>(call.index) < plan.cells.size(), "there is no cell ", call.index,
           ": the plan in ", call.home.string(), " has the cells 0 to ", plan.cells.size() - 1);
}

// Comes before the cell is claimed and its plan is read: a machine with another program takes no cell from the others,
// and may not know the options.
void check_program(const PlanFile& plan) {
  HS_CHECK(plan.program == this_program(), "this machine has ", described(this_program()),
           ", and the comparison was planned by ", described(plan.program),
           ": their numbers cannot stand in one table; use the same program everywhere, or plan again");
}

CellEnd try_cell(const CellCall& call, Observer& observer, const std::function<bool()>& stop_requested,
                 NeededWatch* needed) {
  PlanFile plan = read_plan(call.home);
  check_call(call, plan);
  check_program(plan);
  Work work(call, std::move(plan));
  if (!leads(call.processes)) return work.follow(stop_requested);
  try {
    const CellEnd end = work.run(observer, stop_requested, needed);
    work.tell_others("");
    return end;
  } catch (const ProcessLost&) {
    throw;
  } catch (...) {
    work.tell_others("");
    throw;
  }
}

}  // namespace

CellEnd run_planned_cell(const CellCall& call, Observer& observer, const std::function<bool()>& stop_requested) {
  constexpr int kBeatsBetween = 5;
  HS_CHECK(!call.wait || call.processes.size() == 1,
           "--wait is for one process, and several share this cell; leave it out, and call the cell again later");
  NeededWatch needed(call.timing);
  std::string said;
  while (true) {
    CellEnd end = try_cell(call, observer, stop_requested, &needed);
    if (end.kind == CellEnd::Kind::kDone || !call.wait || end.in_vain) return end;
    if (std::exchange(said, end.sentence) != end.sentence) notice(end.sentence + "; waiting");
    for (int i = 0; i < kBeatsBetween; ++i) {
      if (stop_requested()) throw Interrupted("stopped");
      std::this_thread::sleep_for(std::chrono::duration<double>(call.timing.beat_seconds));
    }
  }
}

void die_with_parent() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

CellMachine this_machine(c10::Device device) {
  const Machine machine = describe_machine();
  return {.host = this_process("").host,
          .processor = machine.processor,
          .instructions = machine.instructions,
          .threads = machine.threads,
          .device = device_name(device)};
}

}  // namespace headshare
