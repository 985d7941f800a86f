#include "headshare/host/engines/slurm_engine.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/host/exit_later.h"
#include "headshare/host/new_id.h"

namespace headshare {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr size_t kMostTasks = 1000;  // of an array: Slurm's own MaxArraySize is 1001
constexpr int kSecondsToSave = 60;   // before the time limit, when Slurm asks a cell to stop
constexpr double kTimeMargin = 3;    // nodes may be slower than this machine
constexpr double kMoreMinutes = 10;  // a node may have to start
constexpr double kMemoryMargin = 2;  // schemes differ
constexpr double kMoreMebibytes = 512;
constexpr double kMebibyte = 1 << 20;
constexpr Seconds kMostBetweenLooks(10);
constexpr double kLooksAtFirst = 0.05;    // the time between two looks is this share of the time so far, 1 s at least
constexpr Seconds kWaitForCancelled(90);  // Slurm's KillWait is 30 s by default
constexpr Seconds kPauseWhileCancelled(0.1);

// The width stands with each field: squeue cuts what is longer.
constexpr const char* kQueueFormat =
    "--Format=ArrayJobID:20|,ArrayTaskID:20|,State:20|,exit_code:20|,RestartCnt:20|,NodeList:200|,Reason:200|";

const std::set<std::string> kUnfinished = {"PENDING",      "CONFIGURING",  "RUNNING",     "COMPLETING", "SUSPENDED",
                                           "STOPPED",      "REQUEUED",     "REQUEUE_FED", "RESIZING",   "SIGNALING",
                                           "REQUEUE_HOLD", "SPECIAL_EXIT", "STAGE_OUT"};
// A task waits for these as long as others need the nodes.
const std::set<std::string> kUsualReasons = {"",          "None",       "Resources",         "Priority",
                                             "BeginTime", "Dependency", "JobArrayTaskLimit", "Cleaning"};

bool does_not_answer(const CommandResult& result) {
  for (const char* sign : {"Unable to contact slurm controller", "timed out", "Zero Bytes were transmitted"}) {
    if (result.error.find(sign) != std::string::npos) return true;
  }
  return false;
}

bool knows_none(const CommandResult& result) { return result.error.find("Invalid job id") != std::string::npos; }

// Slurm's variables hold for sbatch's options as the user's words do.
bool asks_in_environment(const std::vector<const char*>& variables) {
  return std::any_of(variables.begin(), variables.end(), [](const char* one) { return std::getenv(one) != nullptr; });
}

}  // namespace

SlurmEngine::SlurmEngine(const std::string& options, EngineCall call, Run run)
    : options_(parse_slurm_options(options)), call_(std::move(call)), run_(std::move(run)) {}

SlurmEngine::~SlurmEngine() {
  try {
    stop();
  } catch (const std::exception& error) {
    notice(join_text("the jobs ", arrays(), " were not cancelled: ", error.what()));
  }
}

void SlurmEngine::start(const std::vector<size_t>& cells) {
  std::string before;
  for (size_t begin = 0; begin < cells.size(); begin += kMostTasks) {
    const size_t end = std::min(cells.size(), begin + kMostTasks);
    before = submit(
        {cells.begin() + static_cast<std::ptrdiff_t>(begin), cells.begin() + static_cast<std::ptrdiff_t>(end)}, before);
  }
  next_look_ = Clock::now();
}

bool SlurmEngine::asks_for(const std::vector<std::string>& options) const {
  return std::any_of(options_.words.begin(), options_.words.end(), [&](const std::string& word) {
    const std::string name = word.substr(2, word.find('=') - 2);
    return std::find(options.begin(), options.end(), name) != options.end();
  });
}

// Asks for what a cell needs where the user did not.
std::vector<std::string> SlurmEngine::estimated_words() const {
  std::vector<std::string> words;
  if (!asks_for({"cpus-per-task", "cpus-per-gpu"}) && !asks_in_environment({"SBATCH_CPUS_PER_GPU"})) {
    words.push_back(join_text("--cpus-per-task=", call_.threads));
  }
  if (call_.gpu && !asks_for({"gpus", "gres", "gpus-per-node", "gpus-per-task"}) &&
      !asks_in_environment({"SBATCH_GPUS", "SBATCH_GRES", "SBATCH_GPUS_PER_NODE", "SBATCH_GPUS_PER_TASK"})) {
    words.emplace_back("--gpus=1");
  }
  if (call_.seconds_per_cell > 0 && !asks_for({"time"}) && !asks_in_environment({"SBATCH_TIMELIMIT"})) {
    const double minutes = call_.seconds_per_cell * kTimeMargin / 60 + kMoreMinutes;
    words.push_back(join_text("--time=", static_cast<int64_t>(std::ceil(minutes))));
  }
  if (call_.bytes_per_cell > 0 && !asks_for({"mem", "mem-per-cpu", "mem-per-gpu"}) &&
      !asks_in_environment({"SBATCH_MEM_PER_NODE", "SBATCH_MEM_PER_CPU", "SBATCH_MEM_PER_GPU"})) {
    const double mebibytes = call_.bytes_per_cell * kMemoryMargin / kMebibyte + kMoreMebibytes;
    words.push_back(join_text("--mem=", static_cast<int64_t>(std::ceil(mebibytes)), "M"));
  }
  return words;
}

// The user's words stand before those that the engine depends on: sbatch takes the last of two. Where this comparison
// is itself a job that Slurm queued again, its count of restarts is none of its jobs'.
std::vector<std::string> SlurmEngine::words_of(size_t cells, const std::string& name, const std::string& before) const {
  std::vector<std::string> words = {"env", "-u", "SLURM_RESTART_COUNT", "sbatch", "--job-name=" + name};
  for (const std::vector<std::string>& some : {estimated_words(), options_.words}) {
    words.insert(words.end(), some.begin(), some.end());
  }
  if (!bad_nodes_.empty() && !asks_for({"exclude", "nodelist"})) {
    std::string nodes;
    for (const std::string& node : bad_nodes_) nodes.append(nodes.empty() ? "" : ",").append(node);
    words.push_back("--exclude=" + nodes);
  }
  if (!before.empty()) words.push_back(join_text("--dependency=afterany:", before));
  const std::string throttle = options_.throttle > 0 ? join_text("%", options_.throttle) : "";
  words.insert(words.end(), {"--parsable", "--export=ALL", "--requeue", join_text("--signal=B:TERM@", kSecondsToSave),
                             "--output=/dev/null", "--error=/dev/null", join_text("--array=0-", cells - 1, throttle)});
  return words;
}

// Returns the number of the array, which begins when the array `before` has ended; "" where Slurm does not answer.
std::string SlurmEngine::submit(const std::vector<size_t>& cells, const std::string& before) {
  const std::string id = new_id();  // a job of an earlier call may still write into its own folder
  const fs::path folder = call_.home / "jobs" / id;
  make_directories(folder);
  const fs::path script = folder / kSlurmScript;
  write_file(script, slurm_script(call_, folder, cells));
  const std::string name = join_text("headshare ", call_.home.filename().string(), " ", id);
  std::vector<std::string> words = words_of(cells.size(), name, before);
  words.push_back(script.string());
  const CommandResult result = run_(words);
  // Slurm may have taken the array, and only its answer was late.
  if (does_not_answer(result) && !asks_for({"job-name"})) unanswered_.insert(name);
  if (!tasks_.empty() && does_not_answer(result)) {  // the comparison is on its way
    discard(folder);
    waiting_.insert(waiting_.end(), cells.begin(), cells.end());
    return "";
  }
  const std::string array = result.out.substr(0, result.out.find_first_not_of("0123456789"));
  if (result.status != 0 || array.empty()) {
    discard(folder);
    std::string line;
    for (const std::string& word : words) line.append(" ").append(word);
    throw Error(join_text("Slurm does not take the jobs: ", message_of(result),
                          "; correct --workers and go on with --resume. The command was:", line));
  }
  for (size_t place = 0; place < cells.size(); ++place) {
    tasks_[{array, place}] = {.cell = cells[place], .log = log_of(folder, cells[place])};
  }
  return array;
}

std::string SlurmEngine::arrays() const {
  std::string text;
  std::string last;
  for (const auto& [key, task] : tasks_) {
    if (key.first != last) text += (text.empty() ? "" : ",") + key.first;
    last = key.first;
  }
  return text;
}

void SlurmEngine::note_once(const std::string& note) {
  if (noted_.insert(note).second) notice(note);
}

// Returns nothing where Slurm does not answer.
std::optional<std::vector<QueuedTask>> SlurmEngine::queue() {
  const CommandResult result =
      run_({"squeue", "--noheader", "--array", "--states=all", kQueueFormat, join_text("--jobs=", arrays())});
  if (result.status == 0) return parse_queue(result.out);
  if (knows_none(result)) return std::vector<QueuedTask>();
  note_once("Slurm does not answer (" + message_of(result) + "); the jobs go on, and this comparison waits for them");
  return {};
}

// Tells people what they may want to act upon while a task is unfinished.
void SlurmEngine::hear(const QueuedTask& seen, Task* task) {
  if (seen.restarts > task->restarts) {
    task->restarts = seen.restarts;
    notice(join_text("Slurm took job ", seen.name(), " (", call_.cells.at(task->cell),
                     ") from its node and queued it again"));
  }
  if (seen.state == "PENDING" && !kUsualReasons.contains(seen.reason)) {
    note_once(join_text("job ", seen.job, " waits in Slurm's queue for a reason that may not pass by itself: ",
                        seen.reason, " (squeue --start --jobs=", seen.job, " says more)"));
  }
}

EndedCell SlurmEngine::ended(const QueuedTask& seen, const Task& task) {
  const JobLog log = read_job_log(task.log);
  shared_ = shared_ || log.found;
  const int code = WIFEXITED(seen.status) ? WEXITSTATUS(seen.status) : -1;
  const bool ran = !seen.node.empty() && !was_taken(seen) && seen.state != "CANCELLED";
  const bool bad_node = ran && (code == kExitNoScript || code == kExitNoProgram || code == kExitNotStarted);
  if (bad_node) bad_nodes_.insert(seen.node);
  const bool unshared = bad_node && code == kExitNoScript && !shared_;
  EndedCell cell{.cell = task.cell,
                 .code = code,
                 .how = how_it_ended(seen, log, call_.program),
                 .lost = !unshared && (was_taken(seen) || bad_node || code == kExitInterrupted),
                 .unshared = unshared,
                 .machine = seen.node,
                 .job = "job " + seen.name()};
  for (const std::string& note : log.notes) {
    if (note != cell.how) call_.on_note(task.cell, note);
  }
  return cell;
}

std::vector<EndedCell> SlurmEngine::poll(Seconds most) {
  ::poll(nullptr, 0, static_cast<int>(most.count() * 1000));  // a signal ends it
  if (Clock::now() < next_look_) return {};
  if (!waiting_.empty() && cancel_unanswered()) start(std::exchange(waiting_, {}));
  const Seconds wait = (Clock::now() - began_) * kLooksAtFirst;
  next_look_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::min(wait, kMostBetweenLooks));
  if (tasks_.empty()) return {};
  const std::optional<std::vector<QueuedTask>> seen = queue();
  if (!seen) return {};
  std::vector<EndedCell> over;
  std::set<Key> unfinished;
  std::set<Key> known;
  for (const QueuedTask& one : *seen) {
    const auto found = tasks_.find({one.job, one.task});
    if (found == tasks_.end()) continue;
    known.insert(found->first);
    if (kUnfinished.contains(one.state)) {
      hear(one, &found->second);
      unfinished.insert(found->first);
    } else {
      over.push_back(ended(one, found->second));
    }
  }
  for (const auto& [key, task] : tasks_) {
    if (known.contains(key)) continue;
    // Slurm forgets what ended some minutes ago (MinJobAge).
    over.push_back({.cell = task.cell,
                    .code = -1,
                    .how = "Slurm no longer knows it",
                    .lost = true,
                    .machine = "",
                    .job = join_text("job ", key.first, "_", key.second)});
  }
  std::erase_if(tasks_, [&](const auto& entry) { return !unfinished.contains(entry.first); });
  return over;
}

// Cancels the arrays whose submission Slurm did not answer: nobody knows their numbers. Tells whether Slurm answered.
bool SlurmEngine::cancel_unanswered() {
  while (!unanswered_.empty()) {
    if (does_not_answer(run_({"scancel", "--quiet", "--name=" + *unanswered_.begin()}))) return false;
    unanswered_.erase(unanswered_.begin());
  }
  return true;
}

void SlurmEngine::stop() {
  waiting_.clear();
  if (!cancel_unanswered()) {
    notice(join_text("Slurm does not answer; if it took the jobs named '", *unanswered_.begin(),
                     "', cancel them with: scancel --name='", *unanswered_.begin(), "'"));
    unanswered_.clear();
  }
  if (tasks_.empty()) return;
  const CommandResult result = run_({"scancel", "--quiet", arrays()});
  if (result.status != 0 && !knows_none(result)) {
    notice(join_text("Slurm did not cancel the jobs: ", message_of(result), "; cancel them with: scancel ", arrays()));
    tasks_.clear();
    return;
  }
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(kWaitForCancelled);
  const auto works = [](const QueuedTask& one) { return kUnfinished.contains(one.state); };
  while (Clock::now() < until) {
    const std::optional<std::vector<QueuedTask>> seen = queue();
    if (!seen || std::none_of(seen->begin(), seen->end(), works)) break;
    ::poll(nullptr, 0, static_cast<int>(kPauseWhileCancelled.count() * 1000));
  }
  tasks_.clear();
}

namespace {

size_t cells_at_once_in_slurm(const std::string& options) {
  const SlurmOptions parsed = parse_slurm_options(options);
  for (const char* name : {"sbatch", "squeue", "scancel"}) {
    HS_CHECK(has_command(name), "--workers slurm calls ", name,
             ", which is not installed here; start the comparison where "
             "Slurm's commands are (a login node), or use --workers local:N");
  }
  return std::max<size_t>(1, parsed.throttle);
}

}  // namespace

EngineRecord slurm_engine() {
  return {.name = "slurm",
          .help =
              "slurm:OPTIONS runs them as jobs of a Slurm cluster, with long options of sbatch: "
              "slurm:partition=gpu,time=2:00:00,mem=8G, and throttle=N for N at a time",
          .at_once = cells_at_once_in_slurm,
          .make = [](const std::string& options, const EngineCall& call) -> std::unique_ptr<Engine> {
            EngineCall elsewhere = call;
            elsewhere.program = fs::canonical(call.program);  // nodes have another /proc/self/exe
            return std::make_unique<SlurmEngine>(options, elsewhere);
          }};
}

}  // namespace headshare
