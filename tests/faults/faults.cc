// This is a library for LD_PRELOAD that kills a program at its N-th change of the disk, or lets that change fail. It
// counts calls that change something below one directory: opening for writing, writing, truncating, syncing, making,
// renaming, linking and deleting. tests/cli/test_faults.py uses it.
//
//   HEADSHARE_FAULT_BELOW  the directory, an absolute path; without it nothing is counted
//   HEADSHARE_FAULT_LOG    a file outside of it: one record of kRecord bytes for each call. Its length is the
//                          count, so that the processes of one program count together
//   HEADSHARE_FAULT_AT     the number of the call, from 1; without it calls are only counted
//   HEADSHARE_FAULT_KIND   kill   SIGKILL before the call
//                          torn   half of a write, then SIGKILL; SIGKILL before any other call
//                          eio    this call fails with EIO
//                          short  a write writes only half and says so, which is no failure
//                          plain  no call fails, but the file system has neither O_TMPFILE nor renameat2's flags
//                          full   from this call on, whatever needs space fails with ENOSPC
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

constexpr int kRecord = 200;

// Returns the C library's function behind ours.
template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}
#define NEXT(name) next<decltype(&::name)>(#name)

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string path_of(int descriptor) {
  char path[PATH_MAX];
  const std::string link = descriptor == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  return length <= 0 ? "" : std::string(path, static_cast<size_t>(length));
}

std::string path_at(int directory, const char* path) { return *path == '/' ? path : path_of(directory) + "/" + path; }

bool is_watched(const std::string& path) {
  const std::string below = variable("HEADSHARE_FAULT_BELOW");
  return !below.empty() && (path == below || path.starts_with(below + "/"));
}

// Writes the call down and returns its number. Programs of several processes take turns by the lock.
long note_call(const char* call, const std::string& path) {
  const int log = NEXT(open)(variable("HEADSHARE_FAULT_LOG").c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (log < 0) std::abort();
  ::flock(log, LOCK_EX);
  struct stat status {};
  ::fstat(log, &status);
  std::string record = std::string(call) + " " + path;
  record.resize(kRecord - 1, ' ');
  record += '\n';
  if (NEXT(write)(log, record.data(), record.size()) != kRecord) std::abort();
  ::close(log);
  return status.st_size / kRecord + 1;
}

enum class Fate { kGoOn, kHalf, kHalfThenDie, kFail };

void die() {
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();
}

// Decides what becomes of a call on `path`; dies here, or sets errno for kFail.
Fate fate_of(const char* call, const std::string& path, bool writes, bool needs_space) {
  if (!is_watched(path)) return Fate::kGoOn;
  const long number = note_call(call, path);
  const long at = std::atol(variable("HEADSHARE_FAULT_AT").c_str());
  const std::string kind = variable("HEADSHARE_FAULT_KIND");
  if (kind == "full" && at > 0 && number >= at && needs_space) {
    errno = ENOSPC;
    return Fate::kFail;
  }
  if (number != at || kind == "full") return Fate::kGoOn;
  if (kind == "short") return writes ? Fate::kHalf : Fate::kGoOn;
  if (kind == "torn" && writes) return Fate::kHalfThenDie;
  if (kind == "eio") {
    errno = EIO;
    return Fate::kFail;
  }
  die();
  return Fate::kGoOn;
}

bool fails(const char* call, const std::string& path, bool needs_space = false) {
  return fate_of(call, path, /*writes=*/false, needs_space) == Fate::kFail;
}

// Writes `bytes` by `write_some(count)`, as the fate of the call says.
template <class WriteSome>
ssize_t write_by_fate(const char* call, int descriptor, size_t bytes, const WriteSome& write_some) {
  const int before = errno;
  const Fate fate = fate_of(call, path_of(descriptor), /*writes=*/true, /*needs_space=*/true);
  if (fate == Fate::kFail) return -1;
  errno = before;
  if (fate == Fate::kGoOn) return write_some(bytes);
  const ssize_t written = write_some(bytes - bytes / 2);
  if (fate == Fate::kHalfThenDie) die();
  return written;
}

bool makes_file(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

// Tells whether the file system has neither files without names nor the flags of renameat2.
bool is_plain(const std::string& path) { return variable("HEADSHARE_FAULT_KIND") == "plain" && is_watched(path); }

bool lacks(const std::string& path, int error_number) {
  if (!is_plain(path)) return false;
  errno = error_number;
  return true;
}

bool opens_for_writing(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0; }

}  // namespace

// These are all names that the C library gives these calls; ours go on to it.
extern "C" {

#define OPEN(name, parameters, directory, arguments)                                   \
  int name parameters {                                                                \
    va_list rest;                                                                      \
    va_start(rest, flags);                                                             \
    const mode_t mode = makes_file(flags) ? va_arg(rest, mode_t) : 0;                  \
    va_end(rest);                                                                      \
    const std::string where = path_at(directory, path);                                \
    if ((flags & O_TMPFILE) == O_TMPFILE && lacks(where, EOPNOTSUPP)) return -1;       \
    if (opens_for_writing(flags) && fails(#name, where, makes_file(flags))) return -1; \
    return NEXT(name) arguments;                                                       \
  }
OPEN(open, (const char* path, int flags, ...), AT_FDCWD, (path, flags, mode))
OPEN(open64, (const char* path, int flags, ...), AT_FDCWD, (path, flags, mode))
OPEN(openat, (int directory, const char* path, int flags, ...), directory, (directory, path, flags, mode))
OPEN(openat64, (int directory, const char* path, int flags, ...), directory, (directory, path, flags, mode))

FILE* fopen(const char* path, const char* mode) {
  if (std::strpbrk(mode, "wa+") != nullptr && fails("fopen", path_at(AT_FDCWD, path), true)) return nullptr;
  return NEXT(fopen)(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  if (std::strpbrk(mode, "wa+") != nullptr && fails("fopen64", path_at(AT_FDCWD, path), true)) return nullptr;
  return NEXT(fopen64)(path, mode);
}

ssize_t write(int descriptor, const void* data, size_t bytes) {
  return write_by_fate("write", descriptor, bytes, [&](size_t count) { return NEXT(write)(descriptor, data, count); });
}
ssize_t pwrite(int descriptor, const void* data, size_t bytes, off_t offset) {
  return write_by_fate("pwrite", descriptor, bytes,
                       [&](size_t count) { return NEXT(pwrite)(descriptor, data, count, offset); });
}
ssize_t pwrite64(int descriptor, const void* data, size_t bytes, off64_t offset) {
  return write_by_fate("pwrite64", descriptor, bytes,
                       [&](size_t count) { return NEXT(pwrite64)(descriptor, data, count, offset); });
}
// Writes; half of a gathered write is its first piece.
ssize_t writev(int descriptor, const iovec* pieces, int count) {
  return write_by_fate("writev", descriptor, static_cast<size_t>(count),
                       [&](size_t some) { return NEXT(writev)(descriptor, pieces, static_cast<int>(some)); });
}

int fsync(int descriptor) { return fails("fsync", path_of(descriptor)) ? -1 : NEXT(fsync)(descriptor); }
int fdatasync(int descriptor) { return fails("fdatasync", path_of(descriptor)) ? -1 : NEXT(fdatasync)(descriptor); }
int ftruncate(int descriptor, off_t size) noexcept {
  return fails("ftruncate", path_of(descriptor)) ? -1 : NEXT(ftruncate)(descriptor, size);
}
int ftruncate64(int descriptor, off64_t size) noexcept {
  return fails("ftruncate64", path_of(descriptor)) ? -1 : NEXT(ftruncate64)(descriptor, size);
}
int truncate(const char* path, off_t size) noexcept {
  return fails("truncate", path_at(AT_FDCWD, path)) ? -1 : NEXT(truncate)(path, size);
}

int mkdir(const char* path, mode_t mode) noexcept {
  return fails("mkdir", path_at(AT_FDCWD, path), true) ? -1 : NEXT(mkdir)(path, mode);
}
int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  return fails("mkdirat", path_at(directory, path), true) ? -1 : NEXT(mkdirat)(directory, path, mode);
}
int symlink(const char* target, const char* path) noexcept {
  return fails("symlink", path_at(AT_FDCWD, path), true) ? -1 : NEXT(symlink)(target, path);
}
int symlinkat(const char* target, int directory, const char* path) noexcept {
  return fails("symlinkat", path_at(directory, path), true) ? -1 : NEXT(symlinkat)(target, directory, path);
}
int link(const char* from, const char* to) noexcept {
  return fails("link", path_at(AT_FDCWD, to), true) ? -1 : NEXT(link)(from, to);
}

int linkat(int old_directory, const char* from, int directory, const char* to, int flags) noexcept {
  if (fails("linkat", path_at(directory, to), true)) return -1;
  return NEXT(linkat)(old_directory, from, directory, to, flags);
}

int rename(const char* from, const char* to) noexcept {
  return fails("rename", path_at(AT_FDCWD, to)) ? -1 : NEXT(rename)(from, to);
}
int renameat(int old_directory, const char* from, int directory, const char* to) noexcept {
  return fails("renameat", path_at(directory, to)) ? -1 : NEXT(renameat)(old_directory, from, directory, to);
}
int renameat2(int old_directory, const char* from, int directory, const char* to, unsigned flags) noexcept {
  if (flags != 0 && lacks(path_at(directory, to), EINVAL)) return -1;
  if (fails("renameat2", path_at(directory, to))) return -1;
  return NEXT(renameat2)(old_directory, from, directory, to, flags);
}

int unlink(const char* path) noexcept { return fails("unlink", path_at(AT_FDCWD, path)) ? -1 : NEXT(unlink)(path); }
int unlinkat(int directory, const char* path, int flags) noexcept {
  return fails("unlinkat", path_at(directory, path)) ? -1 : NEXT(unlinkat)(directory, path, flags);
}
int rmdir(const char* path) noexcept { return fails("rmdir", path_at(AT_FDCWD, path)) ? -1 : NEXT(rmdir)(path); }
int remove(const char* path) noexcept { return fails("remove", path_at(AT_FDCWD, path)) ? -1 : NEXT(remove)(path); }

}  // extern "C"
