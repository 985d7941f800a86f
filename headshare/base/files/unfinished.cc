#include "headshare/base/files/unfinished.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>

#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr auto kRested = std::chrono::hours(1);

std::string descriptor_path(int descriptor) { return join_text("/proc/self/fd/", descriptor); }

bool link_nameless(int descriptor, const fs::path& path) {
  const std::string from = descriptor_path(descriptor);
  return ::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

bool has_name(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

// Renames over a regular file or to a free name; nothing else may be lost.
int rename_over_file(const fs::path& from, const fs::path& to) {
  if (!irregular_kind(to).empty()) return EEXIST;
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

enum class Writer { kNone, kAlive, kUnknown };

// Tells who holds the lock of what is called path.partial-PID. The lock is given back at once.
Writer writer_of(const fs::path& partial) {
  const int descriptor = ::open(partial.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return Writer::kUnknown;
  const bool locked = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  const int reason = errno;
  ::close(descriptor);
  if (locked) return Writer::kNone;
  return reason == EWOULDBLOCK ? Writer::kAlive : Writer::kUnknown;
}

}  // namespace

int open_unfinished(const fs::path& path, fs::path* temporary) {
  temporary->clear();
  int descriptor = ::open(directory_of(path).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (descriptor >= 0 && has_name(descriptor_path(descriptor))) {
    lock_unfinished(descriptor);
    return descriptor;
  }
  if (descriptor >= 0) ::close(descriptor);  // without /proc it could never get a name
  if (descriptor < 0 && errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return -1;
  *temporary = partial_name(path);
  descriptor = ::open(temporary->c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor >= 0) lock_unfinished(descriptor);
  return descriptor;
}

bool write_all(int descriptor, const void* data, size_t bytes, uint64_t* written) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = ::write(descriptor, from, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    from += count;
    bytes -= static_cast<size_t>(count);
    *written += static_cast<uint64_t>(count);
  }
  return true;
}

bool flush_unfinished(int descriptor) {
  if (::fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS) return false;
  // Closing reports errors of some network file systems; closing a copy does so while the file has no name yet.
  const int copy = ::dup(descriptor);
  return copy < 0 || ::close(copy) == 0;
}

int name_unfinished(int descriptor, const fs::path& temporary, const fs::path& path, Replace replace) {
  if (!temporary.empty()) {
    return replace == Replace::kNothing ? rename_to_free(temporary, path) : rename_over_file(temporary, path);
  }
  if (link_nameless(descriptor, path)) return 0;
  if (errno != EEXIST || replace == Replace::kNothing) return errno;
  const fs::path beside = partial_name(path);  // a link replaces nothing, a rename does
  ::unlink(beside.c_str());                    // of a killed process that had our number
  if (!link_nameless(descriptor, beside)) return errno;
  const int error_number = rename_over_file(beside, path);
  if (error_number != 0) ::unlink(beside.c_str());
  return error_number;
}

int rename_to_free(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // The file system does not know the flag. A hard link replaces nothing either.
  if (::link(from.c_str(), to.c_str()) == 0) return ::unlink(from.c_str()) == 0 ? 0 : errno;
  if (errno == EEXIST || has_name(to)) return EEXIST;
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

bool exchange_names(const fs::path& one, const fs::path& other) {
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0;
}

bool lock_unfinished(int descriptor) { return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

bool sweep_unfinished(const fs::path& path, const std::function<bool(const fs::path& partial)>& is_ours) {
  bool alive = false;
  std::vector<fs::path> left;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory_of(path), ignored)) {
    const std::optional<Partial> partial = parse_partial(entry.path());
    if (!partial || partial->name != path.filename()) continue;
    const Writer writer = writer_of(entry.path());
    alive = alive || writer == Writer::kAlive;
    const bool reused = partial->process == ::getpid();  // a killed process had our number
    const bool rested = (reused && writer == Writer::kNone) || has_rested(entry);
    const bool abandoned = writer != Writer::kAlive && rested && (reused || is_gone(partial->process));
    if (abandoned && is_ours(entry.path())) left.push_back(entry.path());
  }
  for (const fs::path& one : left) fs::remove_all(one, ignored);
  return alive;
}

bool names_open(const fs::path& path, int descriptor) {
  struct stat open {};
  struct stat named {};
  return ::fstat(descriptor, &open) == 0 && ::lstat(path.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
         open.st_dev == named.st_dev;
}

bool is_gone(int64_t process) { return ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH; }

bool has_rested(const fs::directory_entry& entry) {
  std::error_code code;
  const auto time = entry.is_symlink(code) ? fs::file_time_type::min() : fs::last_write_time(entry.path(), code);
  return !code && fs::file_time_type::clock::now() - time > kRested;
}

std::string irregular_kind(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return "";
  if (S_ISDIR(status.st_mode)) return "a directory";
  if (S_ISLNK(status.st_mode)) return "a symbolic link";
  if (S_ISFIFO(status.st_mode)) return "a named pipe";
  return S_ISSOCK(status.st_mode) ? "a socket" : "a device";
}

fs::path written_path(const fs::path& path) {
  std::error_code code;
  if (!fs::is_symlink(fs::symlink_status(path, code))) return path;
  fs::path target = fs::canonical(path, code);
  HS_CHECK(!code, "cannot write ", path.string(), ": it is a symbolic link, and what it leads to cannot be found (",
           code.message(), "); delete the link, or choose another name");
  return target;
}

fs::path directory_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

void sync_directory_of(const fs::path& path) {
  const int descriptor = ::open(directory_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  // Some file systems cannot sync a directory; the name itself has changed by then.
  [[maybe_unused]] const int ignored = ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace headshare
