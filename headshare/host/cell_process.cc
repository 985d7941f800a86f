#include "headshare/host/cell_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"
#include "headshare/compare/method.h"

extern char** environ;

namespace headshare {
namespace {

constexpr int kPollMilliseconds = 100;
constexpr uint64_t kMostPlanBytes = 1 << 24;

// A LinePipe carries what a child writes to the parent and cuts it into lines.
class LinePipe {
 public:
  LinePipe() { HS_CHECK(::pipe2(ends_.data(), O_CLOEXEC) == 0, "cannot make a pipe: ", std::strerror(errno)); }
  ~LinePipe() {
    for (const int end : ends_) {
      if (end >= 0) ::close(end);
    }
  }
  LinePipe(const LinePipe&) = delete;
  LinePipe& operator=(const LinePipe&) = delete;

  int reading_end() const { return ends_[0]; }
  int writing_end() const { return ends_[1]; }
  void close_writing_end() { ::close(std::exchange(ends_[1], -1)); }

  // Reads what has arrived and hands over its whole lines. Returns false when the child has closed its end.
  bool pump(const std::function<void(const std::string&)>& on_line) {
    std::array<char, 4096> buffer;
    const ssize_t got = ::read(ends_[0], buffer.data(), buffer.size());
    if (got < 0) return errno == EINTR;
    if (got == 0) {
      if (!rest_.empty()) on_line(std::exchange(rest_, ""));
      return false;
    }
    rest_.append(buffer.data(), static_cast<size_t>(got));
    for (size_t end; (end = rest_.find('\n')) != std::string::npos; rest_.erase(0, end + 1)) {
      on_line(rest_.substr(0, end));
    }
    return true;
  }

 private:
  std::array<int, 2> ends_ = {-1, -1};
  std::string rest_;
};

pid_t start(const CellProcess& process, const LinePipe& out, const LinePipe& error) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, out.writing_end(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, error.writing_end(), STDERR_FILENO);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> all = {"headshare"};
  all.insert(all.end(), process.words.begin(), process.words.end());
  std::vector<char*> arguments;
  for (std::string& one : all) arguments.push_back(one.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, process.program.c_str(), &files, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  HS_CHECK(failed == 0, "cannot start ", process.program.string(), " for this cell: ", std::strerror(failed));
  return child;
}

void hand_over(const std::string& line, Observer& observer) {
  const nlohmann::json event = json_or_discarded(line);
  if (!event.is_object()) return;
  if (event.value("event", "") == "step") {
    observer.on_step({.step = event.value("step", int64_t{0}),
                      .total_steps = event.value("total_steps", int64_t{1}),
                      .loss = event.value("loss", 0.0),
                      .tokens_per_second = event.value("tokens_per_second", 0.0)});
  } else {
    observer.on_evaluation_progress(event.value("done", int64_t{0}), event.value("total", int64_t{1}));
  }
}

std::string how_it_ended(int status, const std::string& last_error) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    const char* hint = number == SIGKILL ? ", as the kernel does when memory runs out" : "";
    return join_text("its process was ended by signal ", number, " (", ::strsignal(number), ")", hint);
  }
  return last_error.empty() ? join_text("its process ended with exit code ", WEXITSTATUS(status)) : last_error;
}

}  // namespace

std::optional<std::string> CellProcess::run() const {
  LinePipe out;
  LinePipe error;
  const pid_t child = start(*this, out, error);
  out.close_writing_end();
  error.close_writing_end();
  std::string last_error;
  const auto on_message = [&](const std::string& line) {
    constexpr std::string_view kError = "error: ";
    constexpr std::string_view kNote = "note: ";
    if (line.starts_with(kError)) {
      last_error = line.substr(kError.size());
    } else if (!line.empty()) {
      on_note(line.starts_with(kNote) ? line.substr(kNote.size()) : line);
    }
  };
  bool asked = false;
  std::array<pollfd, 2> ends = {pollfd{out.reading_end(), POLLIN, 0}, pollfd{error.reading_end(), POLLIN, 0}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    if (::poll(ends.data(), ends.size(), kPollMilliseconds) > 0) {
      if (ends[0].revents != 0 && !out.pump([&](const std::string& line) { hand_over(line, *observer); })) {
        ends[0].fd = -1;
      }
      if (ends[1].revents != 0 && !error.pump(on_message)) ends[1].fd = -1;
    }
    if (!asked && stop_requested()) {
      asked = true;
      ::kill(child, SIGTERM);
    }
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (asked) throw Interrupted("stopped");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return how_it_ended(status, last_error);
}

void ReportingObserver::on_step(const StepReport& report) {
  write_(nlohmann::json({{"event", "step"},
                         {"step", report.step},
                         {"total_steps", report.total_steps},
                         {"loss", report.loss},
                         {"tokens_per_second", report.tokens_per_second}})
             .dump() +
         "\n");
}

void ReportingObserver::on_evaluation_progress(int64_t done, int64_t total) {
  write_(nlohmann::json({{"event", "evaluation"}, {"done", done}, {"total", total}}).dump() + "\n");
}

void die_with_parent() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

void train_cell(const fs::path& home, const std::string& cell, c10::Device device, Observer& observer,
                const std::function<bool()>& stop_requested) {
  const fs::path path = home / "cells" / cell / "plan.json";
  const CellPlan plan = plan_from_json(read_json_file(path, kMostPlanBytes), path.string());
  comparison_method(plan.options).run_cell(plan, home, device, observer, stop_requested);
}

}  // namespace headshare
