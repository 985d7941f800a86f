#include "headshare/host/lease.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "headshare/base/error.h"
#include "headshare/base/files/list_folder.h"
#include "headshare/base/files/unfinished.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_reader.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/options/field.h"
#include "headshare/base/strings/number.h"
#include "headshare/host/new_id.h"

namespace headshare {
namespace {

constexpr uint64_t kMostLeaseBytes = 1 << 20;
constexpr std::string_view kLease = ".lease-";
constexpr std::string_view kClaim = ".claim-";  // follows the name of a lease while it is written
constexpr double kClocksDiffer = 120;           // seconds

const EnumNames<LeaseState>& state_names() {
  static const EnumNames<LeaseState> names = {{LeaseState::kRunning, "running"},
                                              {LeaseState::kFinished, "finished"},
                                              {LeaseState::kFailed, "failed"},
                                              {LeaseState::kStopped, "stopped"}};
  return names;
}

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

fs::path lease_file(const fs::path& folder, const std::string& cell, int64_t number) {
  return folder / join_text(cell, kLease, number);
}

std::optional<int64_t> lease_number(const fs::path& file, const std::string& cell) {
  const std::string name = file.filename().string();
  const std::string lead = cell + std::string(kLease);
  if (!name.starts_with(lead)) return std::nullopt;
  const std::optional<int64_t> number = number_in<int64_t>(std::string_view(name).substr(lead.size()));
  return number && *number > 0 ? number : std::nullopt;
}

// Returns the highest number of a lease of that cell, 0 without any.
int64_t highest_number(const fs::path& folder, const std::string& cell) {
  int64_t highest = 0;
  std::error_code ignored;
  for (const fs::path& one : list_folder(folder, ignored)) {
    highest = std::max(highest, lease_number(one, cell).value_or(0));
  }
  return highest;
}

// Tells whether this lease is the last one no more: there is a higher one, or the comparison was deleted or begun anew.
// A disk that does not answer for a moment overtakes nobody.
bool is_overtaken(const HeldLease::Claim& claim, int64_t number) {
  if (highest_number(claim.folder, claim.cell) > number) return true;
  std::error_code code;
  const bool there = fs::exists(lease_file(claim.folder, claim.cell, number), code);
  return (!code && !there) || claim.withdrawn();
}

std::string first_line_of(const fs::path& file) {
  std::error_code code;
  if (!fs::exists(file, code)) return "";
  const std::string text = read_file(file, kMostLeaseBytes);
  return text.substr(0, text.find('\n'));
}

// Returns LeaseOwner::machine of this process, which does not change while it lives.
const std::string& machine_here() {
  static const std::string machine = [] {
    std::error_code ignored;
    const std::string boot = first_line_of("/proc/sys/kernel/random/boot_id");
    const std::string processes = fs::read_symlink("/proc/self/ns/pid", ignored).string();
    return boot.empty() || processes.empty() ? std::string() : boot + " " + processes;
  }();
  return machine;
}

// Returns when a process started, in ticks since the boot; nothing where there is no such process.
std::optional<int64_t> start_of(int64_t process) {
  const fs::path file = fs::path("/proc") / std::to_string(process) / "stat";
  std::error_code code;
  if (!fs::exists(file, code)) return std::nullopt;
  std::string text;
  try {
    text = read_file(file, kMostLeaseBytes);
  } catch (const Error&) {
    return std::nullopt;  // it ended meanwhile
  }
  // The name of the program, in parentheses, may hold anything; 19 fields stand between it and the start.
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string word;
  for (int i = 0; i < 20; ++i) fields >> word;
  return number_in<int64_t>(word);
}

nlohmann::ordered_json to_json(const Lease& lease) {
  return {{"comparison", lease.comparison},
          {"claim", lease.claim},
          {"owner",
           {{"host", lease.owner.host},
            {"machine", lease.owner.machine},
            {"process", lease.owner.process},
            {"started", lease.owner.started},
            {"job", lease.owner.job}}},
          {"state", enum_name(state_names(), lease.state)},
          {"reason", lease.reason},
          {"beat", lease.beat},
          {"clock", lease.clock},
          {"progress",
           {{"doing", lease.progress.doing},
            {"step", lease.progress.step},
            {"total_steps", lease.progress.total_steps},
            {"loss", std::isfinite(lease.progress.loss) ? nlohmann::ordered_json(lease.progress.loss) : nullptr},
            {"tokens_per_second", lease.progress.tokens_per_second}}}};
}

std::string text_of(const Lease& lease) { return json_text(to_json(lease), 1) + "\n"; }

LeaseState state_from_json(const JsonReader& read) {
  const std::string text = read.text("state");
  for (const auto& [state, name] : state_names()) {
    if (name == text) return state;
  }
  throw Error(join_text(read.name("state"), " is ", brief_text(text)));
}

// Writes a file in one step, and does not wait until the disk has it: a lease is of no use after a loss of power.
// Returns 0 or the error number.
int write_quickly(const fs::path& path, const std::string& text, Replace replace) {
  fs::path temporary;
  const int descriptor = open_unfinished(path, &temporary);
  if (descriptor < 0) return errno;
  uint64_t written = 0;
  int failed = write_all(descriptor, text.data(), text.size(), &written) ? 0 : errno;
  if (failed == 0) failed = name_unfinished(descriptor, temporary, path, replace);
  ::close(descriptor);
  if (failed != 0 && !temporary.empty()) ::unlink(temporary.c_str());
  return failed;
}

// Writes a file that must not be there yet. Returns 0 or the error number.
int write_new(const fs::path& path, const std::string& text) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0) return errno;
  uint64_t written = 0;
  const int failed = write_all(descriptor, text.data(), text.size(), &written) ? 0 : errno;
  return ::close(descriptor) == 0 || failed != 0 ? failed : errno;
}

// Gives a file a name that nothing has, in one step that one process alone can do. Returns 0 or the error number:
// EOPNOTSUPP where the file system has no such step.
int name_alone(const fs::path& from, const fs::path& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return 0;
  const bool links = errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL;
  if (links) return errno;
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  return errno == EINVAL || errno == ENOSYS ? EOPNOTSUPP : errno;
}

// Creates the file of a lease; returns false where another process was faster. An answer of NFS can be lost, and the
// second try then meets what the first one made: it is ours where it says so. The file's first name is of this claim
// alone, as processes on two machines may have one number.
bool create(const HeldLease::Claim& claim, const Lease& lease) {
  const fs::path file = lease_file(claim.folder, claim.cell, lease.number);
  const fs::path fresh = join_text(file.string(), kClaim, lease.claim);
  int failed = write_new(fresh, text_of(lease));
  if (failed == 0) failed = name_alone(fresh, file);
  ::unlink(fresh.c_str());
  std::error_code code;
  if (failed == ENOENT && fs::exists(file, code)) failed = EEXIST;  // the first name was swept, as the cell is finished
  HS_CHECK(failed != EOPNOTSUPP, "cannot claim ", claim.cell, ": the file system of ", claim.folder.string(),
           " has neither hard links nor renames that replace nothing, so that two processes could work on one cell; ",
           "put the comparison on another file system");
  if (failed == EEXIST) {
    try {
      return read_lease(file, lease.number).claim == lease.claim;
    } catch (const Error&) {
      return false;
    }
  }
  HS_CHECK(failed == 0, "cannot claim ", claim.cell, ": cannot write ", file.string(), ": ", std::strerror(failed),
           "; nothing is lost, run this cell again once that is mended");
  return true;
}

}  // namespace

LeaseOwner this_process(const std::string& job) {
  std::array<char, 256> host = {};
  ::gethostname(host.data(), host.size() - 1);
  return {.host = host.data(),
          .machine = machine_here(),
          .process = ::getpid(),
          .started = start_of(::getpid()).value_or(0),
          .job = job};
}

Lease read_lease(const fs::path& file, int64_t number) {
  const nlohmann::json object = read_json_file(file, kMostLeaseBytes);
  const JsonReader read(object, file.string());
  const JsonReader owner(read.object("owner"), read.name("owner"));
  const JsonReader progress(read.object("progress"), read.name("progress"));
  return {.number = number,
          .comparison = read.text("comparison"),
          .claim = read.text("claim"),
          .owner = {.host = owner.text("host"),
                    .machine = owner.text("machine"),
                    .process = owner.integer("process", 1),
                    .started = owner.integer("started", 0),
                    .job = owner.text("job")},
          .state = state_from_json(read),
          .reason = read.text("reason"),
          .beat = read.integer("beat", 0),
          .clock = read.number("clock"),
          .progress = {.doing = progress.text("doing"),
                       .step = progress.integer("step", 0),
                       .total_steps = progress.integer("total_steps", 0),
                       .loss = progress.optional_number("loss").value_or(std::nan("")),
                       .tokens_per_second = progress.number_from("tokens_per_second", 0)}};
}

std::map<std::string, int64_t> newest_leases(const fs::path& folder) {
  std::map<std::string, int64_t> newest;
  std::error_code ignored;
  for (const fs::path& one : list_folder(folder, ignored)) {
    const std::string name = one.filename().string();
    const std::string cell = name.substr(0, name.rfind(kLease));
    if (const std::optional<int64_t> number = lease_number(name, cell)) {
      newest[cell] = std::max(newest[cell], *number);
    }
  }
  return newest;
}

Lease lease_numbered(const fs::path& folder, const std::string& cell, int64_t number) {
  try {
    return read_lease(lease_file(folder, cell, number), number);
  } catch (const Error&) {
    return Lease{.number = number, .damaged = true};
  }
}

std::optional<Lease> last_lease(const fs::path& folder, const std::string& cell) {
  const int64_t number = highest_number(folder, cell);
  return number == 0 ? std::nullopt : std::optional(lease_numbered(folder, cell, number));
}

void sweep_leases(const fs::path& folder, const std::string& cell) {
  const int64_t last = highest_number(folder, cell);
  std::vector<fs::path> old;
  std::error_code ignored;
  for (const fs::path& one : list_folder(folder, ignored)) {
    const std::string name = one.filename().string();
    const std::optional<Partial> partial = parse_partial(one);
    const size_t claim = name.find(kClaim, cell.size());
    const bool left = partial || claim != std::string::npos;
    const std::optional<int64_t> number = lease_number(partial ? partial->name : name.substr(0, claim), cell);
    if (number && (*number < last || (left && *number == last))) old.push_back(one);
  }
  for (const fs::path& one : old) fs::remove(one, ignored);
}

std::string described(const LeaseOwner& owner) {
  return join_text("host ", owner.host, ", process ", owner.process, owner.job.empty() ? "" : " (" + owner.job + ")");
}

LeaseTiming lease_timing() {
  LeaseTiming timing;
  const char* given = std::getenv("HEADSHARE_BEAT");
  if (given == nullptr) return timing;
  const std::optional<double> seconds = number_in<double>(given);
  HS_CHECK(seconds && *seconds >= 0.001 && *seconds <= 3600, "HEADSHARE_BEAT is ", brief_text(given),
           ", and the seconds between two beats of a lease are from 0.001 to 3600; unset it");
  timing.beat_seconds = *seconds;
  return timing;
}

LeaseWatch::Verdict LeaseWatch::look(const Lease& lease) {
  const auto now = std::chrono::steady_clock::now();
  const bool same = last_ && last_->number == lease.number && last_->damaged == lease.damaged;
  if (!same || last_->beat != lease.beat) {
    alive_ = same;
    changed_ = now;
    if (alive_ && !said_) {
      const double difference = lease.clock - wall_clock();
      if (std::abs(difference) > kClocksDiffer) difference_ = difference;
    }
    last_ = lease;
  }
  if (lease.damaged) alive_ = false;
  if (lease.state != LeaseState::kRunning) return Verdict::kStale;
  const bool seen = !lease.damaged && !machine_here().empty() && lease.owner.machine == machine_here();
  if (seen && start_of(lease.owner.process) != lease.owner.started) return Verdict::kStale;
  if (std::chrono::duration<double>(now - changed_).count() >= timing_.stale_seconds()) return Verdict::kStale;
  return alive_ ? Verdict::kAlive : Verdict::kUnknown;
}

std::optional<double> LeaseWatch::clock_difference() {
  if (!difference_ || said_) return std::nullopt;
  said_ = true;
  return difference_;
}

std::unique_ptr<HeldLease> HeldLease::claim(const Claim& claim, const std::optional<Lease>& last) {
  Lease lease{.number = last ? last->number + 1 : 1,
              .comparison = claim.comparison,
              .claim = new_id(),
              .owner = this_process(claim.job),
              .clock = wall_clock(),
              .progress = {.doing = "reading", .step = 0}};
  if (!create(claim, lease)) return nullptr;
  return std::unique_ptr<HeldLease>(new HeldLease(claim, lease));
}

HeldLease::HeldLease(Claim claim, Lease lease)
    : claim_(std::move(claim)), lease_(std::move(lease)), thread_([this] { beat(); }) {}

HeldLease::~HeldLease() { stop_beating(); }

int64_t HeldLease::number() const {
  const std::lock_guard lock(mutex_);
  return lease_.number;
}

void HeldLease::show(const CellProgress& progress) {
  const std::lock_guard lock(mutex_);
  lease_.progress = progress;
}

bool HeldLease::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void HeldLease::beat() {
  std::unique_lock lock(mutex_);
  const auto pause = std::chrono::duration<double>(claim_.timing.beat_seconds);
  while (!ended_.wait_for(lock, pause, [this] { return ends_; })) {
    lost_ = lost_ || is_overtaken(claim_, lease_.number);
    if (!lost_) write();
  }
}

// A disk that is full for a moment must not end a training; a beat that fails to come is noticed by whoever watches.
void HeldLease::write() {
  ++lease_.beat;
  lease_.clock = wall_clock();
  write_quickly(lease_file(claim_.folder, claim_.cell, lease_.number), text_of(lease_), Replace::kFile);
}

bool HeldLease::renew() {
  const std::lock_guard lock(mutex_);
  if (lost_) return false;
  Lease next = lease_;
  next.claim = new_id();
  ++next.number;
  next.beat = 0;
  next.progress.doing = "publishing";
  lost_ = is_overtaken(claim_, lease_.number) || !create(claim_, next);
  if (!lost_) lease_ = next;
  return !lost_;
}

bool HeldLease::end(LeaseState state, const std::string& reason) {
  stop_beating();
  const std::lock_guard lock(mutex_);
  lost_ = lost_ || is_overtaken(claim_, lease_.number);
  if (lost_) return false;
  lease_.state = state;
  lease_.reason = reason;
  write();
  return true;
}

void HeldLease::stop_beating() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace headshare
