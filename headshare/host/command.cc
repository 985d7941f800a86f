#include "headshare/host/command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "headshare/base/error.h"

extern char** environ;

namespace headshare {
namespace {

// A CommandPipe carries what a program writes.
class CommandPipe {
 public:
  CommandPipe() { HS_CHECK(::pipe2(ends_.data(), O_CLOEXEC) == 0, "cannot make a pipe: ", std::strerror(errno)); }
  ~CommandPipe() {
    close_writing_end();
    ::close(ends_[0]);
  }
  CommandPipe(const CommandPipe&) = delete;
  CommandPipe& operator=(const CommandPipe&) = delete;

  int reading_end() const { return ends_[0]; }
  int writing_end() const { return ends_[1]; }
  void close_writing_end() {
    if (ends_[1] >= 0) ::close(std::exchange(ends_[1], -1));
  }

  // Appends what has arrived; returns false at its end.
  bool read_into(std::string* text) const {
    std::array<char, 4096> buffer;
    const ssize_t got = ::read(ends_[0], buffer.data(), buffer.size());
    if (got > 0) text->append(buffer.data(), static_cast<size_t>(got));
    return got > 0 || (got < 0 && errno == EINTR);
  }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

pid_t start_command(std::vector<std::string> words, const CommandPipe& out, const CommandPipe& error) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, out.writing_end(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, error.writing_end(), STDERR_FILENO);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> arguments;
  for (std::string& one : words) arguments.push_back(one.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, arguments[0], &files, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  HS_CHECK(failed == 0, "cannot start ", words[0], ": ", std::strerror(failed));
  return child;
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& words) {
  CommandPipe out;
  CommandPipe error;
  CommandResult result;
  const pid_t child = start_command(words, out, error);
  out.close_writing_end();
  error.close_writing_end();
  std::array<pollfd, 2> ends = {pollfd{out.reading_end(), POLLIN, 0}, pollfd{error.reading_end(), POLLIN, 0}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    if (::poll(ends.data(), ends.size(), /*timeout=*/-1) < 0) continue;
    if (ends[0].revents != 0 && !out.read_into(&result.out)) ends[0].fd = -1;
    if (ends[1].revents != 0 && !error.read_into(&result.error)) ends[1].fd = -1;
  }
  while (::waitpid(child, &result.status, 0) < 0 && errno == EINTR) {
  }
  return result;
}

bool has_command(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string folders = path != nullptr ? path : "";
  for (size_t end = 0; !folders.empty(); folders.erase(0, end + 1)) {
    end = std::min(folders.find(':'), folders.size());
    if (::access((folders.substr(0, end) + "/" + name).c_str(), X_OK) == 0) return true;
    if (end == folders.size()) break;
  }
  return false;
}

std::string ended_with(int status) {
  if (!WIFSIGNALED(status)) return join_text("exit code ", WEXITSTATUS(status));
  return join_text("signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
}

}  // namespace headshare
