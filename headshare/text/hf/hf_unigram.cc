// Implements the Unigram part of hf_tokenizer.h.
#include <algorithm>
#include <map>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/strings/base64.h"
#include "headshare/text/hf/hf_parts.h"
#include "headshare/text/hf/hf_tokenizer.h"
#include "headshare/text/unicode/metaspace.h"
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

// Reads Metaspace with its options as ours, or refuses it by name.
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

// Reads the tokens and scores of the vocabulary.
void read_vocabulary(const json& model, const std::string& where, UnigramDefinition* d) {
  for (const json& entry : json_list(model, "vocab", where)) {
    const std::string what = join_text(where, ": token ", d->tokens.size());
    HS_CHECK(entry.is_array() && entry.size() == 2 && entry[1].is_number(), what, " is ", brief_json(entry),
             ", not a text and its score");
    d->tokens.push_back(json_string(entry[0], what));
    d->scores.push_back(entry[1].get<double>());
  }
  HS_CHECK(!d->tokens.empty(), where, ": an empty vocabulary");
}

// Reads the added tokens, and behind the vocabulary those that it lacks.
void read_added(const json& object, const TokensBeside& beside, const std::string& where, UnigramDefinition* d) {
  std::map<std::string, int32_t> ids;
  for (size_t id = 0; id < d->tokens.size(); ++id) ids.emplace(d->tokens[id], static_cast<int32_t>(id));
  d->added = added_tokens(object, beside, ids, where);
  append_added(d->added, &d->tokens, where + ": model");
  const double least = *std::min_element(d->scores.begin(), d->scores.end());
  d->scores.resize(d->tokens.size(), least);  // no other score may change by it
  d->unknown = json_id(object["model"], "unk_id", where + ": model");
  HS_CHECK(static_cast<size_t>(d->unknown) < d->tokens.size(), where, ": model: unk_id ", d->unknown,
           " is not among the ", d->tokens.size(), " tokens");
  d->special = {d->unknown};
  for (const AddedToken& token : d->added) {
    const bool is_piece = ids.contains(token.text) && !(token.special && has_unigram_role(token.text));
    if (!is_piece && token.id != d->unknown) d->special.push_back(token.id);
  }
  std::sort(d->special.begin(), d->special.end());
  std::erase_if(d->added, [d](const AddedToken& token) { return token.id == d->unknown && !token.special; });
}

// Returns mBART's "A:0 </s>:0 en_XX:0", and "en_XX:0 A:0 </s>:0" where the language leads; B follows A in a pair.
TemplateOutline language_outline(const std::string& language, bool leads) {
  const auto around = [&](const char* text) {
    return leads ? join_text(language, ":0 ", text, " </s>:0") : join_text(text, " </s>:0 ", language, ":0");
  };
  return {around("A:0"), around("A:0 B:0")};
}

// Returns the language of such a template.
std::optional<LanguageToken> template_language(const TemplateOutline& form, const UnigramDefinition& d) {
  for (const AddedToken& token : d.added) {
    if (!token.special || has_unigram_role(token.text)) continue;
    for (const bool leads : {false, true}) {
      if (form == language_outline(token.text, leads)) return LanguageToken{.id = token.id, .leads = leads};
    }
  }
  return std::nullopt;
}

// The task decides what stands around a text. The forms of ALBERT, XLM-RoBERTa and mBART are taken, others are refused.
void read_post_processor(const json& object, UnigramDefinition* d, const std::string& root) {
  const json& part = part_of_type(object, "post_processor", "TemplateProcessing", root);
  if (part.is_null()) return;
  const std::string where = root + ": post_processor";
  const TemplateOutline form = template_outline(part, where);
  const bool roberta = form == kRobertaTemplate;
  d->language = template_language(form, *d);
  refuse(!roberta && !d->language && form != kBertTemplate && !adds_nothing(form), form.second,
         "a template other than [CLS] A [SEP] B [SEP], <s> A </s> </s> B </s> and mBART's A B </s> en_XX and en_XX A B "
         "</s>,",
         where);
  d->pair_separators = roberta ? 2 : 1;
}

}  // namespace

UnigramDefinition unigram_from_hf_json(const json& object, const std::string& where, const TokensBeside& beside) {
  note_lengths(object, where);
  const json& model = json_member(object, "model", where);
  const std::string name = where + ": model";
  const json& type = json_member(model, "type", name);
  refuse(type != "Unigram", type, "type", name);
  UnigramDefinition d;
  read_vocabulary(model, name, &d);
  read_added(object, beside, where, &d);
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

TemplateOutline outline_of(const UnigramDefinition& d) {
  if (!d.language) return d.pair_separators == 2 ? kRobertaTemplate : kBertTemplate;
  return language_outline(d.tokens[static_cast<size_t>(d.language->id)], d.language->leads);
}

// Returns the template; null for vocabularies without the borders of texts.
json template_processing(const UnigramDefinition& d) {
  std::vector<std::string> borders = {d.pair_separators == 2 ? "<s>" : "[CLS]",
                                      d.pair_separators == 2 ? "</s>" : "[SEP]"};
  std::vector<std::pair<std::string, int32_t>> tokens;
  if (d.language) {
    borders = {"</s>"};
    tokens.emplace_back(d.tokens[static_cast<size_t>(d.language->id)], d.language->id);
  }
  for (const std::string& text : borders) {
    const auto found = std::find_if(d.special.begin(), d.special.end(),
                                    [&](int32_t id) { return d.tokens[static_cast<size_t>(id)] == text; });
    if (found == d.special.end()) return nullptr;
    tokens.emplace_back(text, *found);
  }
  return template_json(outline_of(d), tokens);
}

}  // namespace

json hf_json_from_unigram(const UnigramDefinition& d) {
  json vocabulary = json::array();
  const size_t own = model_tokens(d.added, d.special, d.tokens.size(), has_unigram_role);
  for (size_t id = 0; id < own; ++id) vocabulary.push_back({d.tokens[id], d.scores[id]});
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
          {"added_tokens", added_tokens_json(d.added, d.special, d.tokens)},
          {"normalizer", steps.empty() ? json() : json{{"type", "Sequence"}, {"normalizers", steps}}},
          {"pre_tokenizer", d.splits_at_white ? words : metaspace},
          {"post_processor", template_processing(d)},
          {"decoder", metaspace},
          {"model",
           {{"type", "Unigram"}, {"unk_id", d.unknown}, {"vocab", vocabulary}, {"byte_fallback", d.byte_fallback}}}};
}

}  // namespace headshare
