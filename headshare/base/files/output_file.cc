#include "headshare/base/files/output_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "headshare/base/error.h"
#include "headshare/base/files/unfinished.h"

namespace headshare {
namespace {

constexpr size_t kMarkedBytes = 4096;

// Tells whether a file is ours by its mark. An empty file has nothing to lose.
bool is_marked(const fs::path& path, const std::string& mark) {
  const MappedFile content(path);
  if (mark.empty() || content.size() == 0) return true;
  const auto* bytes = reinterpret_cast<const char*>(content.data());
  return std::string_view(bytes, std::min<uint64_t>(content.size(), kMarkedBytes)).find(mark) != std::string_view::npos;
}

// Closes a file that is being written, and deletes it unless it has got its final name.
class Unfinished {
 public:
  explicit Unfinished(const fs::path& path) : descriptor_(open_unfinished(path, &temporary_)) {}
  ~Unfinished() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!named_ && !temporary_.empty()) ::unlink(temporary_.c_str());
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  // Writes the content; returns 0 or the error number.
  int fill(std::string_view content) {
    uint64_t written = 0;
    const bool whole = descriptor_ >= 0 && write_all(descriptor_, content.data(), content.size(), &written) &&
                       flush_unfinished(descriptor_);
    return whole ? 0 : errno;
  }
  int name(const fs::path& path, Replace replace) {
    const int error_number = name_unfinished(descriptor_, temporary_, path, replace);
    named_ = error_number == 0;
    return error_number;
  }

 private:
  fs::path temporary_;
  int descriptor_;
  bool named_ = false;
};

}  // namespace

OutputFile::OutputFile(fs::path path, Overwrite overwrite, InputPaths inputs, std::string mark)
    : path_(std::move(path)), overwrite_(overwrite), inputs_(std::move(inputs)), mark_(std::move(mark)) {
  HS_CHECK(!path_.empty(), "the name of the file to write is empty");
  check();
  const fs::path folder = directory_of(target());
  std::error_code code;
  HS_CHECK(fs::is_directory(folder, code), "cannot write ", path_.string(), ": there is no directory ",
           folder.string());
  HS_CHECK(::access(folder.c_str(), W_OK | X_OK) == 0, "cannot write ", path_.string(), ": ", std::strerror(errno));
  sweep_unfinished(target(), [](const fs::path& partial) { return irregular_kind(partial).empty(); });
}

void OutputFile::check() const {
  std::error_code code;
  const fs::file_status status = fs::symlink_status(path_, code);
  if (status.type() == fs::file_type::not_found) return;
  HS_CHECK(!code, "cannot access ", path_.string(), ": ", code.message());
  const fs::path file = target();
  HS_CHECK(!fs::is_directory(file, code), path_.string(), " is a directory; name a file in it");
  const std::string kind = irregular_kind(file);
  HS_CHECK(kind.empty(), path_.string(), " is ", kind, ", which is not replaced; choose another name");
  HS_CHECK(!reads_file(inputs_, file), path_.string(), " is read by this call, so it is not replaced; choose another ",
           "name");
  HS_CHECK(overwrite_ == Overwrite::kYes, path_.string(),
           " exists already; --overwrite replaces it, or choose another name");
  HS_CHECK(is_marked(file, mark_), path_.string(),
           " exists and was not written by headshare: it would be lost; choose another place, or move that file");
}

fs::path OutputFile::target() const { return written_path(path_); }

void OutputFile::write(std::string_view content) const {
  const fs::path file = target();
  Unfinished made(file);
  const int failed = made.fill(content);
  HS_CHECK(failed == 0, "cannot write ", path_.string(), ": ", std::strerror(failed), "; what was there before stays");
  if (overwrite_ == Overwrite::kYes) check();
  const int refused = made.name(file, overwrite_ == Overwrite::kYes ? Replace::kFile : Replace::kNothing);
  HS_CHECK(refused != EEXIST, path_.string(), " appeared during this call and is not replaced; choose another name");
  HS_CHECK(refused == 0, "cannot write ", path_.string(), ": ", std::strerror(refused),
           "; what was there before stays");
  sync_directory_of(file);
}

}  // namespace headshare
