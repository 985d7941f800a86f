#include "headshare/convert/output/output_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "headshare/base/error.h"
#include "headshare/base/unfinished.h"
#include "headshare/models/checkpoint.h"

namespace headshare {
namespace {

// `path` without a trailing slash, which would make a name beside it a name inside it.
fs::path plain(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

}  // namespace

OutputKind headshare_output() {
  return {.files = {"config.json", "model.safetensors", "tokenizer.json", "source_tokenizer.json", "task.json"},
          .check_is_one = [](const fs::path& path) { read_options(path); }};
}

OutputDirectory::OutputDirectory(const fs::path& path, Overwrite overwrite, OutputKind kind)
    : path_(plain(path)), overwrite_(overwrite), kind_(std::move(kind)), partial_(partial_name(path_)) {
  HS_CHECK(!path_.empty(), "the name of the directory to write is empty");
  check_name();
  check_writers();
}

OutputDirectory::~OutputDirectory() {
  if (!parents_) return;
  std::error_code ignored;
  fs::remove_all(partial_, ignored);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputDirectory::check_name() const {
  std::error_code ignored;
  if (!path_exists(path_) && !fs::is_symlink(path_, ignored)) return;
  HS_CHECK(overwrite_ == Overwrite::kYes, path_.string(), " exists already; choose another name or add --overwrite");
  check_replaceable(path_);
}

void OutputDirectory::check_writers() const {
  HS_CHECK(!sweep_unfinished(path_), path_.string(),
           " is being written by another headshare process; wait for it or choose another name");
}

void OutputDirectory::begin() {
  parents_.emplace(directory_of(path_));
  check_writers();
  HS_CHECK(::mkdir(partial_.c_str(), 0777) == 0, "cannot create the directory ", partial_.string(), ": ",
           std::strerror(errno));
  descriptor_ = ::open(partial_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ >= 0) lock_unfinished(descriptor_);
}

// `there` is what would be replaced.
void OutputDirectory::check_replaceable(const fs::path& there) const {
  const std::string kind = irregular_kind(there);
  HS_CHECK(kind == "a directory", path_.string(), " is not a directory, so it is not overwritten; choose another name");
  bool empty = true;
  for (const auto& entry : fs::directory_iterator(there)) {
    const bool known =
        std::find(kind_.files.begin(), kind_.files.end(), entry.path().filename().string()) != kind_.files.end();
    HS_CHECK(known, path_.string(), " holds more than a model, '", entry.path().filename().string(),
             "', so it is not overwritten; choose another name");
    empty = false;
  }
  if (!empty) kind_.check_is_one(there);
}

// The two change names in one step where the file system can do that; what was there is looked at once more then, when
// nobody else can reach it by its name.
void OutputDirectory::replace() const {
  check_replaceable(path_);
  if (!exchange_names(partial_, path_)) return replace_directory(partial_, path_);
  try {
    check_replaceable(partial_);
  } catch (const Error&) {
    exchange_names(partial_, path_);
    throw;
  }
  discard(partial_);
}

void OutputDirectory::write(const std::function<void(const fs::path&)>& fill) {
  if (!parents_) begin();
  fill(partial_);
  const int refused = rename_to_free(partial_, path_);
  if (refused == EEXIST && overwrite_ == Overwrite::kYes) {
    replace();
  } else {
    HS_CHECK(refused != EEXIST, path_.string(), " appeared during this call and is not replaced; choose another name");
    HS_CHECK(refused == 0, "cannot write ", path_.string(), ": ", std::strerror(refused));
  }
  sync_directory_of(path_);
}

}  // namespace headshare
