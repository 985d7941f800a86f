#include "headshare/convert/output/output_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "headshare/base/error.h"
#include "headshare/base/files/unfinished.h"
#include "headshare/models/checkpoint.h"

namespace headshare {
namespace {

// `path` without a trailing slash, which would make a name beside it a name inside it.
fs::path plain(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

// The first entry of `directory` that is not a file of one of these names; "" where there is none.
std::string foreign_entry(const fs::path& directory, const std::vector<std::string>& names) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (!name_matches(name, names) || irregular_kind(entry.path()) == "a directory") return name;
  }
  return "";
}

// Tells whether a killed process can have left `partial`: it holds nothing but files of these names, whole or not.
bool is_partial_output(const fs::path& partial, std::vector<std::string> names) {
  if (irregular_kind(partial) != "a directory") return false;
  const size_t whole = names.size();
  for (size_t i = 0; i < whole; ++i) names.push_back(names[i] + ".partial-*");
  try {
    return foreign_entry(partial, names).empty();
  } catch (const fs::filesystem_error&) {
    return false;  // unreadable, or gone
  }
}

}  // namespace

OutputKind headshare_output() {
  return {.files = {"config.json", "model.safetensors", "tokenizer.json", "source_tokenizer.json", "task.json"},
          .check_is_one = [](const fs::path& path) { read_options(path); }};
}

OutputDirectory::OutputDirectory(const fs::path& path, Overwrite overwrite, OutputKind kind, const InputPaths& inputs)
    : path_(plain(path)),
      target_(written_path(path_)),
      overwrite_(overwrite),
      kind_(std::move(kind)),
      partial_(partial_name(target_)) {
  HS_CHECK(!path_.empty(), "the name of the directory to write is empty");
  check_name(inputs);
  check_writers();
}

OutputDirectory::~OutputDirectory() {
  std::error_code ignored;
  if (holds_partial()) fs::remove_all(partial_, ignored);
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool OutputDirectory::holds_partial() const { return descriptor_ >= 0 && names_open(partial_, descriptor_); }

void OutputDirectory::check_name(const InputPaths& inputs) const {
  if (!path_exists(target_)) return;
  HS_CHECK(!reads_within(inputs, target_), path_.string(),
           " is read by this call, so it is not overwritten; choose another name");
  HS_CHECK(overwrite_ == Overwrite::kYes, path_.string(), " exists already; choose another name or add --overwrite");
  check_replaceable(target_);
}

void OutputDirectory::check_writers() const {
  const auto is_ours = [&](const fs::path& partial) { return is_partial_output(partial, kind_.files); };
  HS_CHECK(!sweep_unfinished(target_, is_ours), path_.string(),
           " is being written by another headshare process; wait for it or choose another name");
}

void OutputDirectory::begin() {
  parents_.emplace(directory_of(target_));
  check_writers();
  make_partial();
}

void OutputDirectory::make_partial() {
  HS_CHECK(::mkdir(partial_.c_str(), 0777) == 0, "cannot create the directory ", partial_.string(), ": ",
           std::strerror(errno));
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = ::open(partial_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ >= 0) lock_unfinished(descriptor_);
}

// `there` is what would be replaced.
void OutputDirectory::check_replaceable(const fs::path& there) const {
  const std::string kind = irregular_kind(there);
  HS_CHECK(kind == "a directory", path_.string(), " is not a directory, so it is not overwritten; choose another name");
  const std::string foreign = foreign_entry(there, kind_.files);
  HS_CHECK(foreign.empty(), path_.string(), " holds more than a model, '", foreign,
           "', so it is not overwritten; choose another name");
  if (!fs::is_empty(there)) kind_.check_is_one(there);
}

// The directory that is replaced is looked at twice: before its name changes, and after, when nobody else can reach it
// any more.
void OutputDirectory::replace() const {
  check_replaceable(target_);
  replace_directory(partial_, target_, [&](const fs::path& replaced) { check_replaceable(replaced); });
}

void OutputDirectory::write(const std::function<void(const fs::path&)>& fill) {
  if (!parents_) begin();
  // To another machine our lock may say nothing, and an empty directory looked like a dead process's after an hour.
  if (!holds_partial()) make_partial();
  fill(partial_);
  const int refused = rename_to_free(partial_, target_);
  if (refused == EEXIST && overwrite_ == Overwrite::kYes) {
    replace();
  } else {
    HS_CHECK(refused != EEXIST, path_.string(), " appeared during this call and is not replaced; choose another name");
    HS_CHECK(refused == 0, "cannot write ", path_.string(), ": ", std::strerror(refused));
  }
  sync_directory_of(target_);
}

}  // namespace headshare
