#include "headshare/text/added/added_file.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"

namespace headshare {
namespace {

using nlohmann::json;

struct OwnOption {
  const char* key;
  bool AddedToken::*value;
};
constexpr OwnOption kOwnOptions[] = {{"special", &AddedToken::special},
                                     {"strips-left", &AddedToken::strips_left},
                                     {"strips-right", &AddedToken::strips_right},
                                     {"single-word", &AddedToken::single_word},
                                     {"normalized", &AddedToken::normalized}};

json entry_of(const AddedToken& token) {
  json entry = {{"id", token.id}, {"text", token.text}};
  for (const OwnOption& option : kOwnOptions) entry[option.key] = token.*option.value;
  return entry;
}

AddedToken read_entry(const json& entry, const std::string& where) {
  AddedToken token{.id = json_id(entry, "id", where), .text = json_string(entry, "text", where)};
  std::vector<std::string> known = {"id", "text"};
  for (const OwnOption& option : kOwnOptions) {
    token.*option.value = json_bool(entry, option.key, where);
    known.emplace_back(option.key);
  }
  refuse_unknown_keys(entry, known, where);
  return token;
}

}  // namespace

void write_added(const std::vector<AddedToken>& added, const std::vector<std::string>& tokens,
                 const std::vector<std::string>& always, json* object) {
  for (const std::string& key : always) (*object)[key] = json::array();
  for (const AddedToken& token : added) {
    AddedToken plain{.id = token.id, .text = tokens[static_cast<size_t>(token.id)]};
    if (token == plain) {
      (*object)["verbatim"].push_back(token.id);
      continue;
    }
    plain.special = plain.strips_left = true;
    if (token == plain) {
      (*object)["strips-left"].push_back(token.id);
    } else {
      (*object)["added"].push_back(entry_of(token));
    }
  }
}

std::vector<AddedToken> read_added(const json& object, const std::vector<std::string>& tokens,
                                   const std::string& where) {
  std::vector<AddedToken> added;
  for (const char* key : {"strips-left", "verbatim"}) {
    if (!object.contains(key)) continue;
    const bool strips = std::string_view(key) == "strips-left";
    for (const json& value : json_list(object, key, where)) {
      const int32_t id = json_id(value, join_text(where, ": ", key));
      HS_CHECK(static_cast<size_t>(id) < tokens.size(), where, ": ", key, " names the id ", id,
               ", which is not among the ", tokens.size(), " tokens");
      added.push_back({.id = id, .text = tokens[static_cast<size_t>(id)], .special = strips, .strips_left = strips});
    }
  }
  if (object.contains("added")) {
    for (const json& entry : json_list(object, "added", where)) added.push_back(read_entry(entry, where + ": added"));
  }
  std::stable_sort(added.begin(), added.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return added;
}

}  // namespace headshare
