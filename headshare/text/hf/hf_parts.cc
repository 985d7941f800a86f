#include "headshare/text/hf/hf_parts.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/format.h"
#include "headshare/text/bpe/bpe_file.h"

namespace headshare {

using nlohmann::json;

namespace {

struct HfOption {
  const char* key;
  bool AddedToken::*value;
};
constexpr HfOption kHfOptions[] = {{"lstrip", &AddedToken::strips_left},
                                   {"rstrip", &AddedToken::strips_right},
                                   {"single_word", &AddedToken::single_word}};

}  // namespace

const json& optional_member(const json& object, const std::string& key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

bool optional_bool(const json& object, const std::string& key, bool otherwise, const std::string& where) {
  const json& value = optional_member(object, key);
  return value.is_null() ? otherwise : json_bool(value, where + ": " + key);
}

void refuse(bool unsupported, const json& value, const std::string& what, const std::string& where) {
  HS_CHECK(!unsupported, where, ": ", what, " ", brief_json(value),
           " is not supported; headshare reads Hugging Face's byte-level BPE as GPT-2, Llama 3 and Qwen have it, BPE "
           "with byte fallback as Llama 2 and Gemma have it, WordPiece as BERT has it and Unigram as ALBERT has it");
}

void note_lengths(const json& object, const std::string& where) {
  std::vector<std::string> ignored;
  for (const char* key : {"truncation", "padding"}) {
    if (!optional_member(object, key).is_null()) ignored.emplace_back(key);
  }
  if (ignored.empty()) return;
  notice(join_text(where, ": its ", list_text(ignored),
                   " are not read: headshare cuts and pads texts as its model and its task need it"));
}

const json& part_of_type(const json& object, const std::string& key, const std::string& type,
                         const std::string& where) {
  const json& part = optional_member(object, key);
  if (part.is_null()) return part;
  const json& found = json_member(part, "type", where + ": " + key);
  refuse(found != type, found, key, where);
  return part;
}

AddedToken read_added_token(const json& entry, bool special_otherwise, const std::string& where) {
  AddedToken token;
  token.text = json_string(entry, "content", where);
  token.special = optional_bool(entry, "special", special_otherwise, where);
  for (const HfOption& option : kHfOptions) token.*option.value = optional_bool(entry, option.key, false, where);
  // The default is that of transformers where a file does not say.
  token.normalized = optional_bool(entry, "normalized", !token.special, where);
  return token;
}

std::map<std::string, int32_t> ids_in_vocabulary(const json& vocabulary, const std::string& where) {
  std::map<std::string, int32_t> ids;
  if (!vocabulary.is_object()) return ids;  // as tokens_by_id will say
  for (const auto& [text, id] : vocabulary.items()) {
    ids.emplace(text, json_id(id, join_text(where, ": the id of ", brief_json(text))));
  }
  return ids;
}

std::vector<std::pair<int32_t, std::string>> ids_and_texts(const std::vector<AddedToken>& added) {
  std::vector<std::pair<int32_t, std::string>> pairs;
  for (const AddedToken& token : added) pairs.emplace_back(token.id, token.text);
  return pairs;
}

std::vector<AddedToken> added_tokens(const json& object, const TokensBeside& beside,
                                     const std::map<std::string, int32_t>& vocabulary, const std::string& where) {
  std::vector<AddedToken> added;
  if (const json& list = optional_member(object, "added_tokens"); !list.is_null()) {
    for (const json& entry : json_list(list, where + ": added_tokens")) {
      const std::string what = join_text(where, ": added token ", added.size());
      added.push_back(read_added_token(entry, false, what));
      added.back().id = json_id(entry, "id", what);
    }
  }
  return with_tokens_beside(std::move(added), beside, vocabulary, where);
}

std::vector<AddedToken> with_tokens_beside(std::vector<AddedToken> added, const TokensBeside& beside,
                                           const std::map<std::string, int32_t>& vocabulary, const std::string& where) {
  std::map<std::string, int32_t> ids = vocabulary;
  int32_t largest = -1;
  for (const auto& [text, id] : vocabulary) largest = std::max(largest, id);
  std::map<std::string, size_t> places;  // in `added`
  for (size_t i = 0; i < added.size(); ++i) {
    ids.emplace(added[i].text, added[i].id);
    places.emplace(added[i].text, i);
    largest = std::max(largest, added[i].id);
  }
  for (AddedToken token : beside.tokens) {
    const auto known = ids.find(token.text);
    const bool named = token.id == kIdOfText;
    HS_CHECK(known == ids.end() || named || token.id == known->second, where, ": the token ", brief_text(token.text),
             " has the id ", known == ids.end() ? 0 : known->second,
             ", and the files beside it (tokenizer_config.json, added_tokens.json) say ", token.id);
    const bool fresh_id = named && known == ids.end();
    HS_CHECK(!fresh_id || largest < INT32_MAX, where, ": the token ", brief_text(token.text),
             " needs an id above the largest, which is ", largest, "; ids must run from 0");
    if (named) token.id = fresh_id ? largest + 1 : known->second;
    largest = std::max(largest, token.id);
    const auto [place, fresh] = places.emplace(token.text, added.size());
    if (fresh) {
      added.push_back(std::move(token));
    } else if (beside.decides && !named) {
      added[place->second] = std::move(token);
    }
  }
  std::sort(added.begin(), added.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  for (size_t i = 1; i < added.size(); ++i) {
    HS_CHECK(added[i - 1].id != added[i].id, where, ": two added tokens have the id ", added[i].id);
  }
  return added;
}

void append_added(const std::vector<AddedToken>& added, std::vector<std::string>* tokens, const std::string& where) {
  for (const AddedToken& token : added) {
    const auto at = static_cast<size_t>(token.id);
    HS_CHECK(at <= tokens->size(), where, ": the added token ", brief_text(token.text), " has the id ", token.id,
             ", and the ids from ", tokens->size(), " on have no tokens");
    if (at == tokens->size()) tokens->push_back(token.text);
    HS_CHECK((*tokens)[at] == token.text, where, ": the id ", token.id, " is ", brief_text((*tokens)[at]),
             " in the vocabulary and ", brief_text(token.text), " among the added tokens");
  }
}

json added_token_json(const AddedToken& token) {
  json entry = {
      {"id", token.id}, {"content", token.text}, {"special", token.special}, {"normalized", token.normalized}};
  for (const HfOption& option : kHfOptions) entry[option.key] = token.*option.value;
  return entry;
}

size_t model_tokens(const std::vector<AddedToken>& added, const std::vector<int32_t>& special, size_t tokens,
                    bool (*has_role)(std::string_view)) {
  for (auto last = added.rbegin(); last != added.rend(); ++last, --tokens) {
    const bool behind = static_cast<size_t>(last->id) + 1 == tokens &&
                        std::binary_search(special.begin(), special.end(), last->id) && !has_role(last->text);
    if (!behind) break;
  }
  return tokens;
}

json added_tokens_json(const std::vector<AddedToken>& added, const std::vector<int32_t>& special,
                       const std::vector<std::string>& tokens) {
  std::map<int32_t, json> entries;
  for (const int32_t id : special) {
    entries[id] = added_token_json({.id = id, .text = tokens[static_cast<size_t>(id)], .special = true});
  }
  for (const AddedToken& token : added) entries[token.id] = added_token_json(token);
  json list = json::array();
  for (const auto& [id, entry] : entries) list.push_back(entry);
  return list;
}

std::vector<std::pair<std::string, std::string>> hf_merges(const json& model, const std::string& where) {
  std::vector<std::pair<std::string, std::string>> merges;
  for (const json& merge : json_list(model, "merges", where)) {
    const std::string what = join_text(where, ": merge ", merges.size());
    if (merge.is_array() && merge.size() == 2) {
      merges.emplace_back(json_string(merge[0], what), json_string(merge[1], what));
    } else {
      merges.push_back(parse_merge(json_string(merge, what), what));
    }
  }
  return merges;
}

namespace {

// Returns an outline such as "[CLS]:0 A:0 [SEP]:0".
std::string outline(const json& pieces, const std::string& where) {
  std::string text;
  for (const json& piece : json_list(pieces, where)) {
    HS_CHECK(piece.is_object() && piece.size() == 1, where, ": ", brief_json(piece), " is no part of a template");
    const json& body = piece.begin().value();
    text += (text.empty() ? "" : " ") + json_string(body, "id", where) + ":" +
            std::to_string(json_id(body, "type_id", where));
  }
  return text;
}

}  // namespace

TemplateOutline template_outline(const json& part, const std::string& where) {
  return {outline(json_member(part, "single", where), where), outline(json_member(part, "pair", where), where)};
}

bool adds_nothing(const TemplateOutline& form) {
  return form.first == "A:0" && (form.second == "A:0 B:0" || form.second == "A:0 B:1");
}

namespace {

// Returns "[CLS]:0 A:0" as the pieces of a template.
json template_pieces(const std::string& outlined) {
  json pieces = json::array();
  for (size_t begin = 0; begin < outlined.size();) {
    const size_t end = std::min(outlined.find(' ', begin), outlined.size());
    const std::string id = outlined.substr(begin, end - begin - 2);
    const json body = {{"id", id}, {"type_id", outlined[end - 1] - '0'}};
    pieces.push_back({{id == "A" || id == "B" ? "Sequence" : "SpecialToken", body}});
    begin = end + 1;
  }
  return pieces;
}

}  // namespace

json template_json(const TemplateOutline& form, const std::vector<std::pair<std::string, int32_t>>& tokens) {
  json listed = json::object();
  for (const auto& [text, id] : tokens) listed[text] = {{"id", text}, {"ids", {id}}, {"tokens", {text}}};
  return {{"type", "TemplateProcessing"},
          {"single", template_pieces(form.first)},
          {"pair", template_pieces(form.second)},
          {"special_tokens", listed}};
}

}  // namespace headshare
