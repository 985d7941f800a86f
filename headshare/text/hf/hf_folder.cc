#include "headshare/text/hf/hf_folder.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "headshare/base/error.h"
#include "headshare/base/files/file.h"
#include "headshare/base/json/json_input.h"
#include "headshare/text/hf/hf_names.h"
#include "headshare/text/hf/hf_parts.h"

namespace headshare {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

class FolderReader {
 public:
  explicit FolderReader(const HfTokenizerConfig& config)
      : config_path_(config.file()),
        map_path_(config.folder() / "special_tokens_map.json"),
        added_path_(config.folder() / "added_tokens.json"),
        config_(config.content()) {}

  TokensBeside read() {
    const json config = config_;
    const json& whole = optional_member(config, "split_special_tokens");
    HS_CHECK(whole.is_null() || whole == false, config_path_.string(), ": split_special_tokens is ", brief_json(whole),
             ": headshare finds added tokens in texts; remove split_special_tokens there");
    const json& begins = optional_member(config, "add_bos_token");
    if (!begins.is_null()) found_.adds_begin = json_bool(begins, config_path_.string() + ": add_bos_token");
    HfNames names(config_, config_path_.string());
    const json& listed = optional_member(config, "added_tokens_decoder");
    found_.decides = !listed.is_null();
    if (found_.decides) {
      read_decoder(listed);
    } else {
      names.merge(object_in_folder(map_path_), map_path_.string());
      read_added(object_in_folder(added_path_), names.listed_as_special());
    }
    add_named(names);
    return std::move(found_);
  }

 private:
  void add(AddedToken token) {
    if (known_.insert(token.text).second) found_.tokens.push_back(std::move(token));
  }

  void add_by_id(std::vector<AddedToken> tokens) {
    std::sort(tokens.begin(), tokens.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
    for (AddedToken& token : tokens) add(std::move(token));
  }

  // Reads {"128": {"content": ..., "lstrip": ...}}.
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
    add_by_id(std::move(tokens));
  }

  // Reads {"[E1]": 128}; a token is special where it has a name too, and normalised where it is not.
  void read_added(const json& ids, const std::set<std::string>& special) {
    std::vector<AddedToken> tokens;
    for (const auto& [text, id] : ids.items()) {
      const bool is_special = special.contains(text);
      tokens.push_back({.id = json_id(id, join_text(added_path_.string(), ": the id of ", brief_text(text))),
                        .text = text,
                        .special = is_special,
                        .normalized = !is_special});
    }
    add_by_id(std::move(tokens));
  }

  // A listed token that has a name is special, whatever its entry says.
  void add_named(const HfNames& names) {
    const std::vector<AddedToken> named = names.named();
    for (AddedToken& token : found_.tokens) {
      const auto same = [&token](const AddedToken& one) { return one.text == token.text; };
      token.special = token.special || std::any_of(named.begin(), named.end(), same);
    }
    for (const AddedToken& token : named) add(token);
    found_.names = names.texts();
    for (AddedToken& token : names.extra()) add(std::move(token));
  }

  const fs::path config_path_, map_path_, added_path_;
  const ordered_json& config_;
  TokensBeside found_;
  std::set<std::string> known_;
};

}  // namespace

TokensBeside tokens_beside(const HfTokenizerConfig& config) { return FolderReader(config).read(); }

}  // namespace headshare
