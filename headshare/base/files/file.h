// Files are read with errors that name the path, and written so that no partial file is ever left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headshare {

namespace fs = std::filesystem;

// Returns the whole of a regular file. Throws Error (with the path and the reason) when it is missing, a directory,
// unreadable, or larger than `most` bytes.
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

// Writes a file in one call, as AtomicFile does.
void write_file(const fs::path& path, std::string_view content);

// Creates a directory and its parents; throws Error naming the path when that fails.
void make_directories(const fs::path& path);

// Renames `from` to `to` (replacing it) and makes the rename durable.
void rename_durably(const fs::path& from, const fs::path& to);

// Tells whether something of that name exists; a link counts by what it leads to. Throws Error naming the path and the
// reason where that cannot be told (an unreadable parent, a loop of links, a name that is too long).
bool path_exists(const fs::path& path);

// Returns the name beside `path` under which this process writes until the file is complete: path.partial-PID.
fs::path partial_name(const fs::path& path);

// The name of an unfinished file tells its final name and the process that writes it. parse_partial() returns nothing
// for other names.
struct Partial {
  std::string name;
  int64_t process = 0;
};
std::optional<Partial> parse_partial(const fs::path& path);

// Tells whether `name` matches the pattern, in which one '*' stands for any characters.
bool name_matches(const std::string& name, const std::string& pattern);
bool name_matches(const std::string& name, const std::vector<std::string>& patterns);

// Deletes the unfinished files and directories in a directory that is ours alone, and that no other process writes to.
void remove_partials(const fs::path& directory);

// Does the same in any directory: deletes only those whose final name is one of `patterns`.
void remove_partials(const fs::path& directory, const std::vector<std::string>& patterns);

// Does the same in a directory that other processes, or other machines, may write to: deletes only those whose process
// is gone and which have rested for an hour.
void sweep_partials(const fs::path& directory, const std::vector<std::string>& patterns);

using CheckReplaced = std::function<void(const fs::path& replaced)>;

// Gives the directory `fresh` the name `target`. The file or directory that had that name is replaced in one step where
// the file system can exchange two names (renameat2), and deleted; before that `check` looks at it, when nobody else
// can reach it by its name, and throws if it must not be lost. Throws Error when that fails; `target` is then what it
// was.
void replace_directory(const fs::path& fresh, const fs::path& target, const CheckReplaced& check = {});

// Does the same in two steps: what had the name is moved aside first.
void replace_in_two_steps(const fs::path& fresh, const fs::path& target, const CheckReplaced& check);

// Deletes a file or a directory tree that nobody needs any more. It loses its name first, so that no half of it is ever
// found under it; where that or the deletion fails, a notice says so and the caller goes on.
void discard(const fs::path& path);

// Maps a file into memory, read-only. An empty file maps to size() == 0.
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
