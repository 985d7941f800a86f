#include "headshare/text/hf/hf_parts.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"

namespace headshare {

using nlohmann::json;

const json& optional_member(const json& object, const std::string& key) {
  static const json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

bool optional_bool(const json& object, const std::string& key, bool otherwise, const std::string& where) {
  const json& value = optional_member(object, key);
  return value.is_null() ? otherwise : json_bool(value, where + ": " + key);
}

void refuse(bool unsupported, const json& value, const std::string& what, const std::string& where) {
  HS_CHECK(
      !unsupported, where, ": ", what, " ", brief_json(value),
      " is not supported; headshare reads Hugging Face's byte-level BPE as GPT-2 has it, WordPiece as BERT has it and "
      "Unigram as ALBERT has it");
}

void refuse_lengths(const json& object, const std::string& where) {
  for (const char* key : {"truncation", "padding"}) {
    refuse(!optional_member(object, key).is_null(), optional_member(object, key), key, where);
  }
}

const json& part_of_type(const json& object, const std::string& key, const std::string& type,
                         const std::string& where) {
  const json& part = optional_member(object, key);
  if (part.is_null()) return part;
  const json& found = json_member(part, "type", where + ": " + key);
  refuse(found != type, found, key, where);
  return part;
}

std::vector<std::pair<int32_t, std::string>> added_tokens(const json& object, const std::string& where) {
  std::vector<std::pair<int32_t, std::string>> added;
  const json& list = optional_member(object, "added_tokens");
  if (list.is_null()) return added;
  for (const json& entry : json_list(list, where + ": added_tokens")) {
    const std::string what = join_text(where, ": added token ", added.size());
    const std::string& content = json_string(entry, "content", what);
    HS_CHECK(optional_bool(entry, "special", false, what), what, ", ", brief_json(content),
             ", is not special; text is not searched for added tokens, so this vocabulary is not supported");
    added.emplace_back(json_id(entry, "id", what), content);
  }
  std::sort(added.begin(), added.end());
  for (size_t i = 1; i < added.size(); ++i) {
    HS_CHECK(added[i - 1].first != added[i].first, where, ": two added tokens have the id ", added[i].first);
  }
  return added;
}

json special_token_json(int32_t id, const std::string& text) {
  return {{"id", id},        {"content", text}, {"special", true},    {"single_word", false},
          {"lstrip", false}, {"rstrip", false}, {"normalized", false}};
}

}  // namespace headshare
