#include "headshare/convert/output.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"
#include "headshare/convert/hf/bert.h"
#include "headshare/models/checkpoint.h"

namespace headshare {
namespace {

// `path` without a trailing slash, which would make a name beside it a name inside it.
fs::path plain(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

// Removes a directory tree when it goes out of scope, whatever happened before.
class RemovedAtEnd {
 public:
  explicit RemovedAtEnd(fs::path path) : path_(std::move(path)) {}
  ~RemovedAtEnd() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  RemovedAtEnd(const RemovedAtEnd&) = delete;
  RemovedAtEnd& operator=(const RemovedAtEnd&) = delete;

 private:
  fs::path path_;
};

}  // namespace

OutputKind headshare_output() {
  return {.files = {"config.json", "model.safetensors", "tokenizer.json", "source_tokenizer.json", "task.json"},
          .check_is_one = [](const fs::path& path) { read_options(path); }};
}

OutputKind hugging_face_output() {
  return {.files = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"},
          .check_is_one = [](const fs::path& path) {
            const nlohmann::json config = json_or_discarded(read_file(path / "config.json"));
            HS_CHECK(config.is_object() && config.contains(kExportMark), path.string(),
                     " was not written by headshare, so it is not overwritten; choose another name");
          }};
}

void check_output(const fs::path& path, Overwrite overwrite, const OutputKind& kind) {
  std::error_code ignored;
  if (!path_exists(path) && !fs::is_symlink(path, ignored)) return;
  HS_CHECK(overwrite == Overwrite::kYes, path.string(), " exists already; choose another name or add --overwrite");
  HS_CHECK(fs::is_directory(plain(path), ignored) && !fs::is_symlink(plain(path), ignored), path.string(),
           " is not a directory, so it is not overwritten; choose another name");
  bool empty = true;
  for (const auto& entry : fs::directory_iterator(path)) {
    const bool known =
        std::find(kind.files.begin(), kind.files.end(), entry.path().filename().string()) != kind.files.end();
    HS_CHECK(known, path.string(), " holds more than a model, '", entry.path().filename().string(),
             "', so it is not overwritten; choose another name");
    empty = false;
  }
  if (!empty) kind.check_is_one(path);
}

void write_output(const fs::path& path, Overwrite overwrite, const OutputKind& kind,
                  const std::function<void(const fs::path&)>& write) {
  check_output(path, overwrite, kind);
  const fs::path final_path = plain(path);
  const fs::path partial = partial_name(final_path);
  // What killed calls for the same OUT left.
  sweep_partials(final_path.has_parent_path() ? final_path.parent_path() : fs::path("."),
                 {final_path.filename().string()});
  const RemovedAtEnd clean_partial(partial);
  std::error_code ignored;
  fs::remove_all(partial, ignored);  // of a process that had our number and died
  make_directories(partial);
  write(partial);
  replace_directory(partial, final_path);
}

}  // namespace headshare
