#include "headshare/text/hf/hf_tokenizer.h"

#include <algorithm>
#include <set>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/text/bpe/bpe_file.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/bpe/byte_alphabet.h"
#include "headshare/text/hf/hf_borders.h"
#include "headshare/text/hf/hf_parts.h"
#include "headshare/text/hf/hf_split.h"

namespace headshare {
namespace {

using nlohmann::json;

void check_model(const json& model, const std::string& where) {
  const json& type = json_member(model, "type", where);
  refuse(type != "BPE", type, "type", where);
  const json& dropout = optional_member(model, "dropout");
  refuse(!dropout.is_null() && dropout != 0.0, dropout, "dropout", where);
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const json& affix = optional_member(model, key);
    refuse(!affix.is_null() && affix != "", affix, key, where);
  }
}

// Tells whether text is normalised to NFC; refuses other normalisation.
bool reads_nfc(const json& object, const std::string& where) {
  const json& part = optional_member(object, "normalizer");
  if (part.is_null()) return false;
  const std::string name = where + ": normalizer";
  const json& type = json_member(part, "type", name);
  if (type != "Sequence") {
    refuse(type != "NFC", part, "normalizer", where);
    return true;
  }
  const auto& parts = json_list(part, "normalizers", name);
  for (const json& one : parts) refuse(optional_member(one, "type") != "NFC", one, "normalizer", where);
  return !parts.empty();
}

void make_special(int32_t id, BpeNames* names) {
  const auto at = std::lower_bound(names->special.begin(), names->special.end(), id);
  if (at == names->special.end() || *at != id) names->special.insert(at, id);
}

std::map<std::string, int32_t> ids_of(const std::vector<std::string>& tokens) {
  std::map<std::string, int32_t> ids;
  for (size_t id = 0; id < tokens.size(); ++id) ids.emplace(tokens[id], static_cast<int32_t>(id));
  return ids;
}

// Returns RoBERTa's special tokens, by default where the borders of texts are among the tokens, or GPT-2's: they are in
// the vocabulary, and no merge makes them.
std::vector<AddedToken> special_names(const BpeNames& names, const std::optional<bool>& as_roberta) {
  std::set<std::string_view> unmade(names.tokens.begin(), names.tokens.end());
  std::vector<std::string> made;
  for (const auto& [left, right] : names.merges) made.push_back(left + right);
  for (const std::string& one : made) unmade.erase(one);
  const bool roberta = as_roberta.value_or(unmade.contains("<s>") && unmade.contains("</s>"));
  std::vector<AddedToken> special;
  for (const std::string_view text : kBpeRoles) {
    if (!unmade.contains(text) || roberta == (text == kEndOfTextName)) continue;
    special.push_back({.id = kIdOfText, .text = std::string(text), .special = true});
  }
  return special;
}

// Returns what stands around texts: the files beside GPT-2's pair say it, which has no template.
BpeBorders borders_of_gpt2_files(const Gpt2Files& files, const TokensBeside& beside, const std::string& where) {
  if (files.roberta.value_or(false)) return {.form = BpeBorders::Form::kRoberta};
  BpeBorders borders = read_bpe_borders(json::object(), beside, where);
  const bool said = files.roberta.has_value() && borders.form == BpeBorders::Form::kNone;
  if (said) borders.form = BpeBorders::Form::kNothing;
  return borders;
}

bool has_roberta_borders(const BpeNames& names) {
  const auto has = [&names](const char* text) {
    return std::any_of(names.special.begin(), names.special.end(),
                       [&](int32_t id) { return names.tokens[static_cast<size_t>(id)] == text; });
  };
  return has("<s>") && has("</s>");
}

// Returns the definition of `names` with the tokens that stand around texts; `name` is the part that has the names.
BpeDefinition definition_with_borders(const BpeBorders& borders, const TokensBeside& beside, const std::string& where,
                                      const std::string& name, BpeNames* names) {
  using Form = BpeBorders::Form;
  std::optional<int32_t> begin, end;
  if (borders.form == Form::kBegin) begin = id_of_border(names->tokens, borders.begin, where);
  if (begin) make_special(*begin, names);
  const bool decoder =
      begin || borders.form == Form::kNothing || (borders.form == Form::kNone && !has_roberta_borders(*names));
  if (decoder) end = end_of_text_beside(borders, beside, names->tokens);
  if (end) make_special(*end, names);
  BpeDefinition definition = bpe_from_names(*names, name);
  definition.begin_of_text = begin;
  definition.begin_of_pair = borders.begin_of_pair;
  if (end) definition.end_of_text = end;
  // A decoder that begins texts has no roles of RoBERTa in any case.
  if (decoder && !begin && has_roberta_borders(*names)) definition.roles = BpeRoles::kDecoder;
  if (borders.form == Form::kBert) {
    definition.roles = BpeRoles::kBert;
    definition.end_of_text.reset();
  }
  return definition;
}

}  // namespace

BpeDefinition bpe_from_hf_json(const json& object, const std::string& where, const TokensBeside& beside) {
  note_lengths(object, where);
  const bool composes = reads_nfc(object, where);
  part_of_type(object, "decoder", "ByteLevel", where);
  const BpeBorders borders = read_bpe_borders(object, beside, where);
  const json& model = json_member(object, "model", where);
  const std::string model_name = where + ": model";
  check_model(model, model_name);
  const HfSplit split = read_hf_split(json_member(object, "pre_tokenizer", where), where + ": pre_tokenizer");

  const json& vocabulary = json_member(model, "vocab", model_name);
  std::vector<AddedToken> added = added_tokens(object, beside, ids_in_vocabulary(vocabulary, model_name), where);
  BpeNames names;
  names.tokens = tokens_by_id(vocabulary, ids_and_texts(added), model_name);
  names.merges = hf_merges(model, model_name);
  set_added(std::move(added), &names);
  BpeDefinition definition = definition_with_borders(borders, beside, where, model_name, &names);
  definition.add_prefix_space = split.add_prefix_space;
  definition.split = split.rule;
  definition.composes = composes;
  definition.whole_words = optional_bool(model, "ignore_merges", false, model_name);
  return definition;
}

BpeDefinition bpe_from_gpt2_files(const Gpt2Files& files, const TokensBeside& beside) {
  const std::string where = files.vocabulary_name + " with " + files.merges_name;
  BpeNames names = names_from_gpt2_files(files.vocabulary, files.merges, files.vocabulary_name, files.merges_name);
  TokensBeside listed = beside;
  for (AddedToken& token : special_names(names, files.roberta)) listed.tokens.push_back(std::move(token));
  std::vector<AddedToken> added = with_tokens_beside({}, listed, ids_of(names.tokens), where);
  append_added(added, &names.tokens, where);
  set_added(std::move(added), &names);
  BpeDefinition definition =
      definition_with_borders(borders_of_gpt2_files(files, beside, where), beside, where, where, &names);
  definition.add_prefix_space = files.add_prefix_space;
  return definition;
}

namespace {

// Returns what stands around texts: the token that begins them, BERT's or RoBERTa's borders, or a template that says
// that nothing does; null for vocabularies without these.
json post_processor(const BpeDefinition& definition) {
  if (definition.begin_of_text) {
    const int32_t id = *definition.begin_of_text;
    return begin_template(definition.tokens[static_cast<size_t>(id)], id, definition.begin_of_pair);
  }
  if (definition.roles == BpeRoles::kDecoder) return template_json(kEmptyTemplate, {});
  const auto id_of = [&](const char* text) -> std::optional<int32_t> {
    for (const int32_t id : definition.special) {
      if (definition.tokens[static_cast<size_t>(id)] == text) return id;
    }
    return std::nullopt;
  };
  const bool bert = definition.roles == BpeRoles::kBert;
  const std::pair<const char*, const char*> names = bert ? std::pair("[CLS]", "[SEP]") : std::pair("<s>", "</s>");
  const auto classify = id_of(names.first);
  const auto separate = id_of(names.second);
  if (!classify || !separate) return nullptr;
  if (bert) return template_json(kModernBertTemplate, {{names.first, *classify}, {names.second, *separate}});
  return {{"type", "RobertaProcessing"},
          {"cls", {names.first, *classify}},
          {"sep", {names.second, *separate}},
          {"trim_offsets", true},
          {"add_prefix_space", definition.add_prefix_space}};
}

}  // namespace

json hf_json_from_bpe(const BpeDefinition& definition) {
  json vocabulary = json::object();
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    const std::string& token = definition.tokens[id];
    const bool raw = std::binary_search(definition.special.begin(), definition.special.end(), static_cast<int32_t>(id));
    vocabulary[raw ? token : to_alphabet(token)] = id;
  }
  json merges = json::array();
  for (const TokenMerge& merge : definition.merges) {
    merges.push_back({to_alphabet(definition.tokens[static_cast<size_t>(merge.left)]),
                      to_alphabet(definition.tokens[static_cast<size_t>(merge.right)])});
  }
  const bool use_regex = definition.split == SplitRule::kGpt2;
  const json byte_level = hf_split_json(
      {.rule = use_regex ? SplitRule::kGpt2 : SplitRule::kNone, .add_prefix_space = definition.add_prefix_space});
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added_tokens_json(definition.added, definition.special, definition.tokens)},
          {"normalizer", definition.composes ? json{{"type", "NFC"}} : json()},
          {"pre_tokenizer", hf_split_json({.rule = definition.split, .add_prefix_space = definition.add_prefix_space})},
          {"post_processor", post_processor(definition)},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", definition.whole_words},
            {"vocab", vocabulary},
            {"merges", merges}}}};
}

json hf_json(const Tokenizer& tokenizer) {
  if (const auto* bpe = dynamic_cast<const BpeTokenizer*>(&tokenizer)) return hf_json_from_bpe(bpe->definition());
  if (const auto* characters = dynamic_cast<const CharacterBpeTokenizer*>(&tokenizer)) {
    return hf_json_from_character_bpe(characters->definition());
  }
  if (const auto* unigram = dynamic_cast<const UnigramTokenizer*>(&tokenizer)) {
    return hf_json_from_unigram(unigram->definition());
  }
  const auto* wordpiece = dynamic_cast<const WordPieceTokenizer*>(&tokenizer);
  HS_CHECK(wordpiece != nullptr, "Hugging Face tokenizers have nothing like the tokenizer '", tokenizer.kind(),
           "'; train one of kind 'wordpiece', or, for a decoder, 'bpe'");
  return hf_json_from_wordpiece(wordpiece->definition());
}

}  // namespace headshare
