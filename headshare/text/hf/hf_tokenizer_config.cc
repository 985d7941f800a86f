#include "headshare/text/hf/hf_tokenizer_config.h"

#include "headshare/base/error.h"
#include "headshare/base/files/file.h"
#include "headshare/base/json/json_in_order.h"
#include "headshare/base/json/json_input.h"

namespace headshare {
namespace {

constexpr uint64_t kLargestListing = 16 << 20;

}  // namespace

nlohmann::ordered_json object_in_folder(const fs::path& file) {
  if (!fs::is_regular_file(file)) return nullptr;
  nlohmann::ordered_json object = read_json_in_order(file, kLargestListing);
  HS_CHECK(object.is_object(), file.string(), ": must be a JSON object, not ", brief_json(nlohmann::json(object)));
  return object;
}

HfTokenizerConfig::HfTokenizerConfig(const fs::path& folder)
    : folder_(folder), content_(object_in_folder(folder / kFile)) {}

nlohmann::json HfTokenizerConfig::value(const char* key) const {
  const auto found = content_.find(key);
  return found == content_.end() ? nullptr : nlohmann::json(*found);
}

std::string HfTokenizerConfig::text(const char* key) const {
  const nlohmann::json text = value(key);
  return text.is_null() ? "" : json_string(text, join_text(file().string(), ": ", key));
}

bool HfTokenizerConfig::flag(const char* key) const {
  const nlohmann::json flag = value(key);
  return !flag.is_null() && json_bool(flag, join_text(file().string(), ": ", key));
}

}  // namespace headshare
