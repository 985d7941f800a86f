#include "headshare/base/files/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/files/unfinished.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/number.h"

namespace headshare {
namespace {

constexpr std::string_view kPartial = ".partial-";

// This file descriptor closes itself.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

int open_for_reading(const fs::path& path, struct stat* status) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  HS_CHECK(descriptor >= 0, "cannot open ", path.string(), ": ", std::strerror(errno));
  if (::fstat(descriptor, status) != 0 || S_ISDIR(status->st_mode)) {
    const bool directory = S_ISDIR(status->st_mode);
    ::close(descriptor);
    throw Error(join_text("cannot read ", path.string(), ": ",
                          directory ? "it is a directory, a file was expected" : std::strerror(errno)));
  }
  return descriptor;
}

}  // namespace

std::string read_file(const fs::path& path, uint64_t most) {
  struct stat status {};
  const Descriptor descriptor(open_for_reading(path, &status));
  std::string content;
  content.reserve(static_cast<size_t>(status.st_size));
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = ::read(descriptor.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    HS_CHECK(count >= 0, "cannot read ", path.string(), ": ", std::strerror(errno));
    if (count == 0) return content;
    content.append(buffer, static_cast<size_t>(count));
    HS_CHECK(content.size() <= most, path.string(), " is larger than the ", most, " bytes such a file may have");
  }
}

void check_readable(const fs::path& path) {
  struct stat status {};
  const Descriptor descriptor(open_for_reading(path, &status));
}

AtomicFile::AtomicFile(fs::path path) : path_(written_path(path)) {
  const std::string kind = irregular_kind(path_);
  HS_CHECK(kind.empty(), "cannot write ", path_.string(), ": it is ", kind);
  descriptor_ = open_unfinished(path_, &temporary_);
  if (descriptor_ < 0) fail("create", errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* action, int error_number) const {
  throw Error(join_text("cannot ", action, " ", path_.string(), ": ", std::strerror(error_number), " (after ", written_,
                        " bytes); nothing was left under that name that was not there before"));
}

void AtomicFile::write(const void* data, size_t bytes) {
  if (!write_all(descriptor_, data, bytes, &written_)) fail("write", errno);
}

void AtomicFile::commit(const fs::path& name) {
  if (!flush_unfinished(descriptor_)) fail("flush", errno);
  const int error_number = name_unfinished(descriptor_, temporary_, name, Replace::kFile);
  if (error_number != 0) fail("finish", error_number);
  ::close(std::exchange(descriptor_, -1));
  sync_directory_of(name);
}

void write_file(const fs::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

void make_directories(const fs::path& path) {
  std::error_code code;
  fs::create_directories(path, code);
  std::error_code ignored;
  HS_CHECK(!code && fs::is_directory(path, ignored), "cannot create the directory ", path.string(), ": ",
           code ? code.message() : "something else has that name");
}

void rename_durably(const fs::path& from, const fs::path& to) {
  HS_CHECK(::rename(from.c_str(), to.c_str()) == 0, "cannot rename ", from.string(), " to ", to.string(), ": ",
           std::strerror(errno));
  sync_directory_of(to);
}

bool path_exists(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (status.type() == fs::file_type::not_found) return false;
  HS_CHECK(!code, "cannot access ", path.string(), ": ", code.message());
  return true;
}

fs::path partial_name(const fs::path& path) { return fs::path(join_text(path.string(), kPartial, ::getpid())); }

std::optional<Partial> parse_partial(const fs::path& path) {
  const std::string name = path.filename().string();
  const size_t at = name.rfind(kPartial);
  if (at == std::string::npos) return std::nullopt;
  const std::optional<int64_t> process = number_in<int64_t>(name.substr(at + kPartial.size()));
  return process ? std::optional(Partial{name.substr(0, at), *process}) : std::nullopt;
}

bool name_matches(const std::string& name, const std::string& pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string::npos) return name == pattern;
  const std::string_view end = std::string_view(pattern).substr(star + 1);
  return name.size() + 1 >= pattern.size() && name.starts_with(pattern.substr(0, star)) && name.ends_with(end);
}

bool name_matches(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return name_matches(name, pattern); });
}

namespace {

// Removes the entries of a directory that `chosen` picks, by the entry and what its name says.
template <class Chosen>
void remove_chosen(const fs::path& directory, Chosen chosen) {
  std::error_code ignored;
  std::vector<fs::path> unfinished;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    const std::optional<Partial> partial = parse_partial(entry.path());
    if (partial && chosen(entry, *partial)) unfinished.push_back(entry.path());
  }
  for (const fs::path& one : unfinished) fs::remove_all(one, ignored);
}

}  // namespace

void remove_partials(const fs::path& directory) {
  remove_chosen(directory, [](const fs::directory_entry&, const Partial&) { return true; });
}

void remove_partials(const fs::path& directory, const std::vector<std::string>& patterns) {
  remove_chosen(directory, [&](const fs::directory_entry&, const Partial& partial) {
    return name_matches(partial.name, patterns);
  });
}

void sweep_partials(const fs::path& directory, const std::vector<std::string>& patterns) {
  remove_chosen(directory, [&](const fs::directory_entry& entry, const Partial& partial) {
    return name_matches(partial.name, patterns) && is_gone(partial.process) && has_rested(entry);
  });
}

namespace {

// Calls `change`; when it throws, `undo` gives what had the name `target` that name back from `aside`.
template <class Change, class Undo>
void change_or_undo(const fs::path& target, const fs::path& aside, Change change, Undo undo) {
  try {
    change();
  } catch (...) {
    if (!undo()) notice(join_text("what was ", target.string(), " is ", aside.string(), " now; rename it by hand"));
    throw;
  }
}

void move_to_free(const fs::path& from, const fs::path& to) {
  const int error_number = rename_to_free(from, to);
  HS_CHECK(error_number == 0, "cannot rename ", from.string(), " to ", to.string(), ": ", std::strerror(error_number));
}

}  // namespace

void replace_directory(const fs::path& fresh, const fs::path& target, const CheckReplaced& check) {
  if (!path_exists(target)) return rename_durably(fresh, target);
  if (!exchange_names(fresh, target)) return replace_in_two_steps(fresh, target, check);
  const auto look = [&] {
    if (check) check(fresh);
  };
  change_or_undo(target, fresh, look, [&] { return exchange_names(fresh, target); });
  sync_directory_of(target);
  discard(fresh);
}

void replace_in_two_steps(const fs::path& fresh, const fs::path& target, const CheckReplaced& check) {
  const fs::path old = partial_name(target.string() + ".old");
  move_to_free(target, old);
  const auto change = [&] {
    if (check) check(old);
    move_to_free(fresh, target);
  };
  change_or_undo(target, old, change, [&] { return rename_to_free(old, target) == 0; });
  sync_directory_of(target);
  discard(old);
}

void discard(const fs::path& path) {
  std::error_code code;
  if (fs::symlink_status(path, code).type() == fs::file_type::not_found) return;
  const fs::path nameless = parse_partial(path) ? path : partial_name(path);
  if (nameless != path) {
    std::error_code ignored;
    fs::remove_all(nameless, ignored);
    fs::rename(path, nameless, code);
  }
  if (!code) fs::remove_all(nameless, code);
  if (code) notice(join_text("cannot delete ", path.string(), ": ", code.message(), "; delete it by hand"));
}

MappedFile::MappedFile(const fs::path& path) {
  struct stat status {};
  const Descriptor descriptor(open_for_reading(path, &status));
  size_ = static_cast<uint64_t>(status.st_size);
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
  HS_CHECK(mapped != MAP_FAILED, "cannot map ", path.string(), " (", size_,
           " bytes) into memory: ", std::strerror(errno));
  data_ = static_cast<const std::byte*>(mapped);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

}  // namespace headshare
