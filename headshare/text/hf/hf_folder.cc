#include "headshare/text/hf/hf_folder.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "headshare/base/error.h"
#include "headshare/base/file.h"
#include "headshare/base/json_input.h"
#include "headshare/text/hf/hf_parts.h"

namespace headshare {
namespace {

using nlohmann::json;

constexpr uint64_t kLargestListing = 16 << 20;
constexpr const char* kNamed[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                  "pad_token", "cls_token", "mask_token"};
constexpr const char* kAdditional = "additional_special_tokens";
constexpr const char* kExtra = "extra_special_tokens";

// A file of the folder, or null where there is none.
json object_in(const fs::path& path) {
  if (!fs::is_regular_file(path)) return nullptr;
  json object = read_json_input(path, kLargestListing);
  HS_CHECK(object.is_object(), path.string(), ": must be a JSON object, not ", brief_json(object));
  return object;
}

class FolderReader {
 public:
  explicit FolderReader(const fs::path& folder)
      : config_path_(folder / "tokenizer_config.json"),
        map_path_(folder / "special_tokens_map.json"),
        added_path_(folder / "added_tokens.json"),
        config_(object_in(config_path_)) {}

  std::vector<AddedToken> read() {
    if (config_.is_object()) {
      const json& whole = optional_member(config_, "split_special_tokens");
      HS_CHECK(whole.is_null() || whole == false, config_path_.string(), ": split_special_tokens is ",
               brief_json(whole), ": headshare finds added tokens in texts; remove split_special_tokens there");
    }
    const json& listed = optional_member(config_, "added_tokens_decoder");
    if (!listed.is_null()) {
      read_decoder(listed);
      read_named(config_, config_path_);
      return tokens_;
    }
    const json map = object_in(map_path_);
    read_added(object_in(added_path_), map);
    read_named(map, map_path_);
    read_named(config_, config_path_);
    return tokens_;
  }

 private:
  void add(AddedToken token) {
    if (known_.insert(token.text).second) tokens_.push_back(std::move(token));
  }

  // {"128": {"content": ..., "lstrip": ...}}
  void read_decoder(const json& listed) {
    const std::string where = config_path_.string() + ": added_tokens_decoder";
    HS_CHECK(listed.is_object(), where, ": must be an object {id: token}, not ", brief_json(listed));
    std::vector<AddedToken> tokens;
    for (const auto& [key, entry] : listed.items()) {
      int32_t id = -1;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      HS_CHECK(error == std::errc() && end == key.data() + key.size() && id >= 0, where, ": ", brief_text(key),
               " is no id");
      AddedToken token = read_added_token(entry, false, where);
      token.id = id;
      tokens.push_back(std::move(token));
    }
    std::sort(tokens.begin(), tokens.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
    for (AddedToken& token : tokens) add(std::move(token));
  }

  // {"[E1]": 128}; a token is special where it has a name too, and normalised where it is not. transformers 5 does not
  // count the additional_special_tokens of special_tokens_map.json as names here.
  void read_added(const json& ids, json map) {
    if (ids.is_null()) return;
    if (map.is_object()) map.erase(kAdditional);
    std::set<std::string> special;
    for (const json* object : {static_cast<const json*>(&map), static_cast<const json*>(&config_)}) {
      for_each_name(*object, "", [&](const AddedToken& token) { special.insert(token.text); });
    }
    std::vector<AddedToken> tokens;
    for (const auto& [text, id] : ids.items()) {
      const bool is_special = special.contains(text);
      tokens.push_back({.id = json_id(id, join_text(added_path_.string(), ": the id of ", brief_text(text))),
                        .text = text,
                        .special = is_special,
                        .normalized = !is_special});
    }
    std::sort(tokens.begin(), tokens.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
    for (AddedToken& token : tokens) add(std::move(token));
  }

  void read_named(const json& object, const fs::path& path) {
    for_each_name(object, path.string(), [this](const AddedToken& token) { add(token); });
  }

  // The special tokens that an object names: a text each, or an object with options.
  template <class Visit>
  static void for_each_name(const json& object, const std::string& where, const Visit& visit) {
    const auto one = [&](const json& value, int32_t id, const std::string& what) {
      if (value.is_null()) return;
      AddedToken token = value.is_string() ? AddedToken{.text = value.get<std::string>(), .special = true}
                                           : read_added_token(value, true, what);
      token.id = id;
      token.special = true;
      if (!token.text.empty()) visit(token);
    };
    for (const char* key : kNamed) one(optional_member(object, key), kIdOfText, where + ": " + key);
    for (const char* key : {kAdditional, kExtra}) {
      const json& list = optional_member(object, key);
      if (!list.is_array() && !list.is_object()) continue;
      for (const json& value : list) one(value, kIdOfTextOrNext, where + ": " + key);
    }
  }

  const fs::path config_path_, map_path_, added_path_;
  const json config_;
  std::vector<AddedToken> tokens_;
  std::set<std::string> known_;
};

}  // namespace

std::vector<AddedToken> added_tokens_in(const fs::path& folder) { return FolderReader(folder).read(); }

}  // namespace headshare
