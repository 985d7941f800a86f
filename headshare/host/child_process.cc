#include "headshare/host/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/host/command.h"

extern char** environ;

namespace headshare {

ChildProcess::ChildProcess(const fs::path& program, const std::vector<std::string>& words, OnNote on_note)
    : on_note_(std::move(on_note)) {
  HS_CHECK(::pipe2(pipe_.data(), O_CLOEXEC) == 0, "cannot make a pipe: ", std::strerror(errno));
  try {
    start(program, words);
  } catch (...) {
    for (const int end : pipe_) ::close(end);
    throw;
  }
  ::close(std::exchange(pipe_[1], -1));
  ::fcntl(pipe_[0], F_SETFL, O_NONBLOCK);
}

ChildProcess::~ChildProcess() {
  if (!end_) {
    ::kill(id_, SIGKILL);
    while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ::close(pipe_[0]);
}

void ChildProcess::start(const fs::path& program, const std::vector<std::string>& words) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, pipe_[1], STDERR_FILENO);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> all = {"headshare"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& one : all) arguments.push_back(one.data());
  arguments.push_back(nullptr);
  const int failed = ::posix_spawn(&id_, program.c_str(), &files, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  HS_CHECK(failed == 0, "cannot start ", program.string(), ": ", std::strerror(failed));
}

// Reads what has arrived and takes its whole lines; returns false once the child has closed its end.
bool ChildProcess::pump() {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t got = ::read(pipe_[0], buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) break;
    rest_.append(buffer.data(), static_cast<size_t>(got));
    for (size_t end; (end = rest_.find('\n')) != std::string::npos; rest_.erase(0, end + 1)) hear(rest_.substr(0, end));
  }
  if (!rest_.empty()) hear(std::exchange(rest_, ""));
  return false;
}

void ChildProcess::hear(const std::string& line) {
  constexpr std::string_view kError = "error: ";
  constexpr std::string_view kNote = "note: ";
  if (line.starts_with(kError)) {
    last_error_ = line.substr(kError.size());
  } else if (!line.empty()) {
    on_note_(line.starts_with(kNote) ? line.substr(kNote.size()) : line);
  }
}

ChildProcess::End ChildProcess::end_of(int status) const {
  if (WIFSIGNALED(status)) {
    const char* hint = WTERMSIG(status) == SIGKILL ? ", as the kernel does when memory runs out" : "";
    return {.code = -1, .how = join_text("its process was ended by ", ended_with(status), hint)};
  }
  const int code = WEXITSTATUS(status);
  if (code == 0) return {};
  return {.code = code,
          .how = last_error_.empty() ? join_text("its process ended with ", ended_with(status)) : last_error_};
}

std::optional<ChildProcess::End> ChildProcess::look() {
  if (end_ || pump()) return end_;
  // The process closed its standard error: it is about to end.
  int status = 0;
  while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
  }
  end_ = end_of(status);
  return end_;
}

ChildProcess::End ChildProcess::wait() {
  while (!look()) {
    pollfd said{pipe_[0], POLLIN, 0};
    ::poll(&said, 1, -1);
  }
  return *end_;
}

void ChildProcess::ask_to_stop() {
  if (!end_) ::kill(id_, SIGTERM);
}

}  // namespace headshare
