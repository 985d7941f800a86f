// Files: reading with errors that name the path, and writing that never leaves a partial file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace headshare {

namespace fs = std::filesystem;

// The whole of a regular file. Throws Error (with the path and the reason) when it is missing, a
// directory, unreadable, or larger than `most` bytes.
std::string read_file(const fs::path& path, uint64_t most = UINT64_MAX);

// Checks that `path` can be opened for reading as a file (not a directory); throws Error if not.
void check_readable(const fs::path& path);

// Writes a file under a temporary name beside `path`; commit() flushes it to disk and renames it
// into place. Without commit() the temporary file is removed: the final name holds the whole new
// file or what was there before. Throws Error naming the path, the reason and the byte count.
class AtomicFile {
 public:
  explicit AtomicFile(fs::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit() { commit(path_); }
  void commit(const fs::path& name);  // under another name in the same directory

 private:
  [[noreturn]] void fail(const char* action, int error_number) const;

  fs::path path_;
  fs::path temporary_;
  int descriptor_ = -1;
  uint64_t written_ = 0;
};

// AtomicFile in one call.
void write_file(const fs::path& path, std::string_view content);

// Creates a directory and its parents; throws Error naming the path when that fails.
void make_directories(const fs::path& path);

// Renames `from` to `to` (replacing it) and makes the rename durable.
void rename_durably(const fs::path& from, const fs::path& to);

// Whether something of that name is there; a link counts by what it leads to. Throws Error naming the path and the
// reason where that cannot be told (an unreadable parent, a loop of links, a name that is too long).
bool path_exists(const fs::path& path);

// The name beside `path` under which this process writes until all is there: path.partial-PID.
fs::path partial_name(const fs::path& path);

// The process that the name of an unfinished file carries; nothing for other names.
std::optional<int64_t> partial_process(const fs::path& path);

// Deletes the unfinished files and directories in `directory` that no living process will finish: those whose process
// is gone and which have rested for an hour (another machine may share the directory). A missing directory has none.
void sweep_partials(const fs::path& directory);

// Gives the directory `fresh` the name `target`. What had it is replaced in one step where the file system can exchange
// two names (renameat2), and deleted.
void replace_directory(const fs::path& fresh, const fs::path& target);

// Deletes a file or a directory tree that nobody needs any more. It loses its name first, so that no half of it is ever
// found under it; where that or the deletion fails, a notice says so and the caller goes on.
void discard(const fs::path& path);

// A read-only memory-mapped file. An empty file maps to size() == 0.
class MappedFile {
 public:
  explicit MappedFile(const fs::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  const std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  const std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace headshare
