// The Unigram part of hf_tokenizer.h.
#include <algorithm>
#include <map>

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"
#include "headshare/text/hf/hf_parts.h"
#include "headshare/text/hf/hf_tokenizer.h"
#include "headshare/text/unigram/unigram_file.h"

namespace headshare {
namespace {

using nlohmann::json;

constexpr const char* kSpaces = " {2,}";  // the one regular expression that is read

NormalStep replace_step(const json& part, const std::string& where) {
  const json& pattern = json_member(part, "pattern", where);
  const std::string& to = json_string(part, "content", where);
  if (pattern.is_object() && pattern.contains("String")) {
    const std::string& from = json_string(pattern, "String", where);
    HS_CHECK(!from.empty(), where, ": a step that replaces an empty text");
    return replacing_step(from, to, where);
  }
  refuse(pattern != json{{"Regex", kSpaces}}, pattern, "the pattern", where);
  return replacing_step("", to, where);
}

void add_step(const json& part, const std::string& where, std::vector<NormalStep>* steps) {
  const json& type = json_member(part, "type", where);
  if (type == "Sequence") {
    for (const json& one : json_list(part, "normalizers", where)) {
      const json& inner = optional_member(one, "type");
      refuse(inner == "Sequence", inner, "a sequence within one", where);
      add_step(one, where, steps);
    }
  } else if (type == "Replace") {
    steps->push_back(replace_step(part, where));
  } else if (type == "NFKD") {
    steps->push_back({.kind = NormalStepKind::kDecompose});
  } else if (type == "StripAccents") {
    steps->push_back({.kind = NormalStepKind::kStripMarks});
  } else if (type == "Lowercase") {
    steps->push_back({.kind = NormalStepKind::kLowercase});
  } else if (type == "Precompiled") {
    const json& map = json_member(part, "precompiled_charsmap", where);
    if (map.is_null() || map == "") return;
    const std::string name = where + ": precompiled_charsmap";
    steps->push_back({.kind = NormalStepKind::kCharsmap,
                      .map = std::make_shared<Charsmap>(from_base64(json_string(map, name), name), name)});
  } else {
    refuse(true, type, "the step", where);
  }
}

// Metaspace with its options as ours, or refused by name.
void read_metaspace(const json& part, const std::string& where, UnigramDefinition* d) {
  const json& type = json_member(part, "type", where);
  refuse(type != "Metaspace", type, "type", where);
  const json& replacement = json_member(part, "replacement", where);
  refuse(replacement != kMetaspace, replacement, "replacement", where);
  refuse(!optional_bool(part, "split", true, where), false, "split", where);
  const json& scheme = optional_member(part, "prepend_scheme");
  refuse(!scheme.is_null() && scheme != "always" && scheme != "never", scheme, "prepend_scheme", where);
  d->prefix = scheme.is_null() ? optional_bool(part, "add_prefix_space", true, where) : scheme == "always";
}

void read_pre_tokenizer(const json& object, UnigramDefinition* d, const std::string& root) {
  const std::string where = root + ": pre_tokenizer";
  const json& part = json_member(object, "pre_tokenizer", root);
  d->splits_at_white = json_member(part, "type", where) == "Sequence";
  if (!d->splits_at_white) return read_metaspace(part, where, d);
  const auto& parts = json_list(part, "pretokenizers", where);
  const bool known =
      parts.size() == 2 && parts[0].is_object() && parts[0].contains("type") && parts[0]["type"] == "WhitespaceSplit";
  refuse(!known, parts, "a sequence other than WhitespaceSplit and Metaspace,", where);
  read_metaspace(parts[1], where, d);
}

// An added token as the file has it.
struct AddedToken {
  std::string text;
  bool special = false;
  bool strips_left = false;
};

std::map<int32_t, AddedToken> read_added(const json& object, const std::string& where) {
  std::map<int32_t, AddedToken> added;
  const json& list = optional_member(object, "added_tokens");
  if (list.is_null()) return added;
  for (const json& entry : json_list(list, where + ": added_tokens")) {
    const std::string what = join_text(where, ": added token ", added.size());
    AddedToken token{.text = json_string(entry, "content", what),
                     .special = optional_bool(entry, "special", false, what),
                     .strips_left = optional_bool(entry, "lstrip", false, what)};
    for (const char* key : {"rstrip", "single_word"}) {
      refuse(optional_bool(entry, key, false, what), token.text, join_text(key, " of the token"), what);
    }
    for (const char* key : {"lstrip", "normalized"}) {
      refuse(!token.special && optional_bool(entry, key, false, what), token.text,
             join_text(key, " of the token, which is not special,"), what);
    }
    const int32_t id = json_id(entry, "id", what);
    HS_CHECK(added.emplace(id, std::move(token)).second, where, ": two added tokens have the id ", id);
  }
  return added;
}

// Tokens and scores of the vocabulary, and behind them the added tokens that it lacks.
void read_vocabulary(const json& model, const std::map<int32_t, AddedToken>& added, const std::string& where,
                     UnigramDefinition* d) {
  for (const json& entry : json_list(model, "vocab", where)) {
    const std::string what = join_text(where, ": token ", d->tokens.size());
    HS_CHECK(entry.is_array() && entry.size() == 2 && entry[1].is_number(), what, " is ", brief_json(entry),
             ", not a text and its score");
    d->tokens.push_back(json_string(entry[0], what));
    d->scores.push_back(entry[1].get<double>());
  }
  HS_CHECK(!d->tokens.empty(), where, ": an empty vocabulary");
  const double least = *std::min_element(d->scores.begin(), d->scores.end());
  for (const auto& [id, token] : added) {
    const auto at = static_cast<size_t>(id);
    HS_CHECK(at <= d->tokens.size(), where, ": the added token ", brief_text(token.text), " has the id ", id,
             ", and the ids from ", d->tokens.size(), " on have no tokens");
    if (at == d->tokens.size()) {
      d->tokens.push_back(token.text);
      d->scores.push_back(least);  // no other score may change by it
    }
    HS_CHECK(d->tokens[at] == token.text, where, ": the id ", id, " is ", brief_text(d->tokens[at]),
             " in the vocabulary and ", brief_text(token.text), " among the added tokens");
    (token.special ? d->special : d->verbatim).push_back(id);
    if (token.special && token.strips_left) d->strips_left.push_back(id);
  }
  d->unknown = json_id(model, "unk_id", where);
  HS_CHECK(static_cast<size_t>(d->unknown) < d->tokens.size(), where, ": unk_id ", d->unknown, " is not among the ",
           d->tokens.size(), " tokens");
  if (!std::binary_search(d->special.begin(), d->special.end(), d->unknown)) {
    d->special.push_back(d->unknown);
    std::sort(d->special.begin(), d->special.end());
    std::erase(d->verbatim, d->unknown);
  }
}

// "[CLS]:0 A:0 [SEP]:0".
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

constexpr std::pair<const char*, const char*> kAlbert = {"[CLS]:0 A:0 [SEP]:0", "[CLS]:0 A:0 [SEP]:0 B:1 [SEP]:1"};
constexpr std::pair<const char*, const char*> kRoberta = {"<s>:0 A:0 </s>:0", "<s>:0 A:0 </s>:0 </s>:0 B:0 </s>:0"};

// What is put around a text is the task's affair, and is ALBERT's or XLM-RoBERTa's: other forms are refused.
void read_post_processor(const json& object, UnigramDefinition* d, const std::string& root) {
  const json& part = part_of_type(object, "post_processor", "TemplateProcessing", root);
  if (part.is_null()) return;
  const std::string where = root + ": post_processor";
  const std::pair<std::string, std::string> form = {outline(json_member(part, "single", where), where),
                                                    outline(json_member(part, "pair", where), where)};
  const bool roberta = form == std::pair<std::string, std::string>(kRoberta);
  refuse(!roberta && form != std::pair<std::string, std::string>(kAlbert), form.second,
         "a template other than [CLS] A [SEP] B [SEP] and <s> A </s> </s> B </s>,", where);
  d->pair_separators = roberta ? 2 : 1;
}

}  // namespace

UnigramDefinition unigram_from_hf_json(const json& object, const std::string& where) {
  refuse_lengths(object, where);
  const json& model = json_member(object, "model", where);
  const std::string name = where + ": model";
  const json& type = json_member(model, "type", name);
  refuse(type != "Unigram", type, "type", name);
  UnigramDefinition d;
  read_vocabulary(model, read_added(object, where), name, &d);
  d.byte_fallback = optional_bool(model, "byte_fallback", false, name);
  const json& normalizer = optional_member(object, "normalizer");
  if (!normalizer.is_null()) add_step(normalizer, where + ": normalizer", &d.steps);
  check_steps(d.steps.size(), where + ": normalizer");
  read_pre_tokenizer(object, &d, where);
  const json& decoder = part_of_type(object, "decoder", "Metaspace", where);
  if (!decoder.is_null()) {
    UnigramDefinition decoded;
    read_metaspace(decoder, where + ": decoder", &decoded);
    refuse(decoded.prefix != d.prefix, decoder, "another prepend_scheme than the pre_tokenizer's,",
           where + ": decoder");
  }
  read_post_processor(object, &d, where);
  return d;
}

namespace {

json step_json(const NormalStep& step) {
  switch (step.kind) {
    case NormalStepKind::kReplace:
      return {{"type", "Replace"}, {"pattern", {{"String", step.from}}}, {"content", step.to}};
    case NormalStepKind::kCollapseSpaces:
      return {{"type", "Replace"}, {"pattern", {{"Regex", kSpaces}}}, {"content", step.to}};
    case NormalStepKind::kDecompose:
      return {{"type", "NFKD"}};
    case NormalStepKind::kStripMarks:
      return {{"type", "StripAccents"}};
    case NormalStepKind::kLowercase:
      return {{"type", "Lowercase"}};
    case NormalStepKind::kCharsmap:
      return {{"type", "Precompiled"}, {"precompiled_charsmap", to_base64(step.map->bytes())}};
  }
  return nullptr;
}

// "[CLS]:0 A:0" as the pieces of a template.
json template_pieces(const std::string& outlined) {
  json pieces = json::array();
  for (size_t begin = 0; begin < outlined.size();) {
    const size_t colon = outlined.find(':', begin);
    const std::string id = outlined.substr(begin, colon - begin);
    const json body = {{"id", id}, {"type_id", outlined[colon + 1] - '0'}};
    pieces.push_back({{id == "A" || id == "B" ? "Sequence" : "SpecialToken", body}});
    begin = colon + 3;
  }
  return pieces;
}

// Null for vocabularies without the borders of texts.
json template_processing(const UnigramDefinition& d) {
  const bool roberta = d.pair_separators == 2;
  json tokens = json::object();
  for (const char* text : {roberta ? "<s>" : "[CLS]", roberta ? "</s>" : "[SEP]"}) {
    const auto found = std::find_if(d.special.begin(), d.special.end(),
                                    [&](int32_t id) { return d.tokens[static_cast<size_t>(id)] == text; });
    if (found == d.special.end()) return nullptr;
    tokens[text] = {{"id", text}, {"ids", {*found}}, {"tokens", {text}}};
  }
  const auto& [single, pair] = roberta ? kRoberta : kAlbert;
  return {{"type", "TemplateProcessing"},
          {"single", template_pieces(single)},
          {"pair", template_pieces(pair)},
          {"special_tokens", tokens}};
}

}  // namespace

json hf_json_from_unigram(const UnigramDefinition& d) {
  json vocabulary = json::array();
  for (size_t id = 0; id < d.tokens.size(); ++id) vocabulary.push_back({d.tokens[id], d.scores[id]});
  std::map<int32_t, json> added;
  for (const int32_t id : d.special) {
    added[id] = special_token_json(id, d.tokens[static_cast<size_t>(id)]);
    added[id]["lstrip"] = std::binary_search(d.strips_left.begin(), d.strips_left.end(), id);
  }
  for (const int32_t id : d.verbatim) {
    added[id] = special_token_json(id, d.tokens[static_cast<size_t>(id)]);
    added[id]["special"] = false;
  }
  json list = json::array();
  for (const auto& [id, entry] : added) list.push_back(entry);
  json steps = json::array();
  for (const NormalStep& step : d.steps) steps.push_back(step_json(step));
  const json metaspace = {{"type", "Metaspace"},
                          {"replacement", kMetaspace},
                          {"prepend_scheme", d.prefix ? "always" : "never"},
                          {"split", true}};
  const json words = {{"type", "Sequence"}, {"pretokenizers", {{{"type", "WhitespaceSplit"}}, metaspace}}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", list},
          {"normalizer", steps.empty() ? json() : json{{"type", "Sequence"}, {"normalizers", steps}}},
          {"pre_tokenizer", d.splits_at_white ? words : metaspace},
          {"post_processor", template_processing(d)},
          {"decoder", metaspace},
          {"model",
           {{"type", "Unigram"}, {"unk_id", d.unknown}, {"vocab", vocabulary}, {"byte_fallback", d.byte_fallback}}}};
}

}  // namespace headshare
