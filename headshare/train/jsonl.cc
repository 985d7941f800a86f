#include "headshare/train/jsonl.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_text.h"

namespace headshare {
namespace {

// Counts the bytes of `text` that a run resumed after `step` keeps: whole lines of steps up to `step`.
size_t kept_bytes(std::string_view text, int64_t step, const fs::path& path) {
  size_t start = 0;
  for (int64_t number = 1;; ++number) {
    const size_t end = text.find('\n', start);
    if (end == std::string_view::npos) return start;
    const std::string_view line = text.substr(start, end - start);
    const nlohmann::json object = json_or_discarded(line);
    HS_CHECK(object.is_object(), path.string(), ":", number, ": not a JSON object: '", line.substr(0, 60),
             "'; repair the line or move the file away to resume");
    if (object.value(kRepeated, nlohmann::json()) == true) return start;
    const auto found = object.find("step");
    if (found != object.end() && found->is_number() && found->get<double>() > static_cast<double>(step)) return start;
    start = end + 1;
  }
}

}  // namespace

int64_t last_step(const fs::path& path) {
  if (!path_exists(path)) return 0;
  int64_t last = 0;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json object = json_or_discarded(line);
    last = std::max(last, json_count(object, "step").value_or(0));
  }
  return last;
}

JsonlWriter::JsonlWriter(const fs::path& path) : file_(std::make_unique<AppendFile>(path)) {
  HS_CHECK(file_->size() == 0, "'", path.string(), "' holds ", file_->size(),
           " bytes of an earlier run: resume that run, or choose another folder");
}

JsonlWriter JsonlWriter::resume(const fs::path& path, int64_t step) {
  auto file = std::make_unique<AppendFile>(path);
  const size_t kept = kept_bytes(read_file(path), step, path);
  if (kept < file->size()) file->truncate(kept);
  return JsonlWriter(std::move(file));
}

void JsonlWriter::write(const nlohmann::json& object) { file_->append(json_text(object) + '\n'); }

}  // namespace headshare
