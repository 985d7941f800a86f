#include "headshare/text/hf_tokenizer.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/text/bpe_file.h"
#include "headshare/text/byte_alphabet.h"
#include "headshare/text/json_input.h"

namespace headshare {
namespace {

using nlohmann::json;

// The member, or null where it is absent: Hugging Face reads both alike.
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
  HS_CHECK(!unsupported, where, ": ", what, " ", brief_json(value),
           " is not supported; headshare reads Hugging Face's byte-level BPE as GPT-2 has it");
}

// A part that must be ByteLevel or null.
void check_byte_level_or_null(const json& object, const std::string& key, const std::string& where) {
  const json& part = optional_member(object, key);
  if (part.is_null()) return;
  const json& type = json_member(part, "type", where + ": " + key);
  refuse(type != "ByteLevel", type, key, where);
}

void check_parts(const json& object, const std::string& where) {
  for (const char* key : {"normalizer", "truncation", "padding"}) {
    refuse(!optional_member(object, key).is_null(), optional_member(object, key), key, where);
  }
  check_byte_level_or_null(object, "decoder", where);
  check_byte_level_or_null(object, "post_processor", where);
}

void check_model(const json& model, const std::string& where) {
  const json& type = json_member(model, "type", where);
  refuse(type != "BPE", type, "type", where);
  const json& dropout = optional_member(model, "dropout");
  refuse(!dropout.is_null() && dropout != 0.0, dropout, "dropout", where);
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const json& affix = optional_member(model, key);
    refuse(!affix.is_null() && affix != "", affix, key, where);
  }
  refuse(optional_bool(model, "ignore_merges", false, where), true, "ignore_merges", where);
}

using IdAndText = std::pair<int32_t, std::string>;

std::vector<IdAndText> added_tokens(const json& object, const std::string& where) {
  std::vector<IdAndText> added;
  const json& list = optional_member(object, "added_tokens");
  if (list.is_null()) return added;
  for (const json& entry : json_list(list, where + ": added_tokens")) {
    const std::string what = join_text(where, ": added token ", added.size());
    const std::string& content = json_string(json_member(entry, "content", what), what + ": content");
    HS_CHECK(optional_bool(entry, "special", false, what), what, ", ", brief_json(content),
             ", is not special; text is not searched for added tokens, so this vocabulary is not supported");
    added.emplace_back(json_id(json_member(entry, "id", what), what + ": id"), content);
  }
  std::sort(added.begin(), added.end());
  for (size_t i = 1; i < added.size(); ++i) {
    HS_CHECK(added[i - 1].first != added[i].first, where, ": two added tokens have the id ", added[i].first);
  }
  return added;
}

}  // namespace

BpeDefinition bpe_from_hf_json(const json& object, const std::string& where) {
  check_parts(object, where);
  const json& model = json_member(object, "model", where);
  const std::string model_name = where + ": model";
  check_model(model, model_name);
  const json& splitter = json_member(object, "pre_tokenizer", where);
  const std::string splitter_name = where + ": pre_tokenizer";
  const json& type = json_member(splitter, "type", splitter_name);
  refuse(type != "ByteLevel", type, "type", splitter_name);

  const std::vector<IdAndText> added = added_tokens(object, where);
  BpeNames names;
  names.tokens = tokens_by_id(json_member(model, "vocab", model_name), added, model_name);
  for (const IdAndText& token : added) names.special.push_back(token.first);
  for (const json& merge : json_list(json_member(model, "merges", model_name), model_name + ": merges")) {
    const std::string what = join_text(model_name, ": merge ", names.merges.size());
    if (merge.is_array() && merge.size() == 2) {
      names.merges.emplace_back(json_string(merge[0], what), json_string(merge[1], what));
    } else {
      names.merges.push_back(parse_merge(json_string(merge, what), what));
    }
  }
  BpeDefinition definition = bpe_from_names(names, model_name);
  definition.add_prefix_space = optional_bool(splitter, "add_prefix_space", true, splitter_name);
  definition.split = optional_bool(splitter, "use_regex", true, splitter_name) ? SplitRule::kGpt2 : SplitRule::kNone;
  return definition;
}

json hf_json_from_bpe(const BpeDefinition& definition) {
  json vocabulary = json::object();
  json added = json::array();
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    const std::string& token = definition.tokens[id];
    if (std::binary_search(definition.special.begin(), definition.special.end(), static_cast<int32_t>(id))) {
      added.push_back({{"id", id},
                       {"content", token},
                       {"special", true},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false}});
      vocabulary[token] = id;
    } else {
      vocabulary[to_alphabet(token)] = id;
    }
  }
  json merges = json::array();
  for (const BpeMerge& merge : definition.merges) {
    merges.push_back({to_alphabet(definition.tokens[static_cast<size_t>(merge.left)]),
                      to_alphabet(definition.tokens[static_cast<size_t>(merge.right)])});
  }
  const json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", definition.add_prefix_space},
                           {"trim_offsets", true},
                           {"use_regex", definition.split == SplitRule::kGpt2}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", vocabulary},
            {"merges", merges}}}};
}

}  // namespace headshare
