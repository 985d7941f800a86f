// Implements the WordPiece half of hf_tokenizer.h.
#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/text/bpe/bpe_file.h"
#include "headshare/text/hf/hf_parts.h"
#include "headshare/text/hf/hf_tokenizer.h"
#include "headshare/text/wordpiece/wordpiece_file.h"

namespace headshare {
namespace {

using nlohmann::json;

BertNormalization normalization_of(const json& object, const std::string& where) {
  const json& part = part_of_type(object, "normalizer", "BertNormalizer", where);
  if (part.is_null()) return kNoNormalization;
  const std::string name = where + ": normalizer";
  const bool lowercase = optional_bool(part, "lowercase", true, name);
  return {.clean_text = optional_bool(part, "clean_text", true, name),
          .space_chinese = optional_bool(part, "handle_chinese_chars", true, name),
          .strip_accents = optional_bool(part, "strip_accents", lowercase, name),
          .lowercase = lowercase};
}

int32_t id_of(const WordPieceDefinition& definition, std::string_view text) {
  const auto found = std::find(definition.tokens.begin(), definition.tokens.end(), text);
  return found == definition.tokens.end() ? -1 : static_cast<int32_t>(found - definition.tokens.begin());
}

// Returns [CLS] A [SEP] and [CLS] A [SEP] B [SEP].
json bert_template(const WordPieceDefinition& definition) {
  const auto special = [](const char* text, int segment) {
    return json{{"SpecialToken", {{"id", text}, {"type_id", segment}}}};
  };
  const auto sequence = [](const char* name, int segment) {
    return json{{"Sequence", {{"id", name}, {"type_id", segment}}}};
  };
  json tokens = json::object();
  for (const char* text : {"[CLS]", "[SEP]"}) {
    tokens[text] = {{"id", text}, {"ids", {id_of(definition, text)}}, {"tokens", {text}}};
  }
  const json first = {special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0)};
  json both = first;
  both.push_back(sequence("B", 1));
  both.push_back(special("[SEP]", 1));
  return {{"type", "TemplateProcessing"}, {"single", first}, {"pair", both}, {"special_tokens", tokens}};
}

// The task puts [CLS] and [SEP] around a text, as BERT does: files that ask for anything else are refused.
void check_post_processor(const json& object, const WordPieceDefinition& definition, const std::string& where) {
  const json& part = optional_member(object, "post_processor");
  if (part.is_null()) return;
  const json& type = json_member(part, "type", where + ": post_processor");
  bool as_bert = part == bert_template(definition);
  if (type == "TemplateProcessing") as_bert = as_bert || adds_nothing(template_outline(part, where));
  if (type == "BertProcessing") {
    as_bert = optional_member(part, "cls") == json{"[CLS]", id_of(definition, "[CLS]")} &&
              optional_member(part, "sep") == json{"[SEP]", id_of(definition, "[SEP]")};
  }
  refuse(!as_bert, part, join_text("post_processor ", brief_json(type), " other than [CLS] A [SEP] B [SEP],"), where);
}

void check_decoder(const json& object, const std::string& where) {
  const json& part = part_of_type(object, "decoder", "WordPiece", where);
  if (part.is_null()) return;
  const json& prefix = optional_member(part, "prefix");
  refuse(!prefix.is_null() && prefix != kContinuationPrefix, prefix, "prefix", where + ": decoder");
  refuse(!optional_bool(part, "cleanup", true, where + ": decoder"), false, "cleanup", where + ": decoder");
}

}  // namespace

WordPieceDefinition wordpiece_from_hf_json(const json& object, const std::string& where, const TokensBeside& beside) {
  note_lengths(object, where);
  check_decoder(object, where);
  refuse(part_of_type(object, "pre_tokenizer", "BertPreTokenizer", where).is_null(), nullptr, "pre_tokenizer", where);
  const json& model = json_member(object, "model", where);
  const std::string name = where + ": model";
  const json& type = json_member(model, "type", name);
  refuse(type != "WordPiece", type, "type", name);
  const json& prefix = optional_member(model, "continuing_subword_prefix");
  refuse(!prefix.is_null() && prefix != kContinuationPrefix, prefix, "continuing_subword_prefix", name);

  WordPieceDefinition definition;
  definition.normalization = normalization_of(object, where);
  const json& vocabulary = json_member(model, "vocab", name);
  const std::map<std::string, int32_t> ids = ids_in_vocabulary(vocabulary, name);
  definition.added = added_tokens(object, beside, ids, where);
  definition.tokens = tokens_by_id(vocabulary, ids_and_texts(definition.added), name);
  const std::string& unknown = json_string(model, "unk_token", name);
  definition.unknown = id_of(definition, unknown);
  HS_CHECK(definition.unknown >= 0, name, ": the unk_token ", brief_json(unknown), " is not among the ",
           definition.tokens.size(), " tokens");
  for (const AddedToken& token : definition.added) {
    const bool spells = ids.contains(token.text) && !(token.special && has_bert_role(token.text));
    if (!spells || token.id == definition.unknown) definition.special.push_back(token.id);
  }
  if (!std::binary_search(definition.special.begin(), definition.special.end(), definition.unknown)) {
    definition.special.push_back(definition.unknown);
    std::sort(definition.special.begin(), definition.special.end());
  }
  const json& longest = optional_member(model, "max_input_chars_per_word");
  if (!longest.is_null()) definition.longest_word = json_id(longest, name + ": max_input_chars_per_word");
  check_post_processor(object, definition, where);
  return definition;
}

void add_tokens_beside(const TokensBeside& beside, const std::string& where, WordPieceDefinition* definition) {
  std::map<std::string, int32_t> ids;
  for (const std::string& token : definition->tokens) ids.emplace(token, static_cast<int32_t>(ids.size()));
  const size_t size = definition->tokens.size();
  definition->added = with_tokens_beside({}, beside, ids, where);
  append_added(definition->added, &definition->tokens, where);
  for (size_t id = size; id < definition->tokens.size(); ++id) definition->special.push_back(static_cast<int32_t>(id));
}

json hf_json_from_wordpiece(const WordPieceDefinition& definition) {
  json vocabulary = json::object();
  const size_t own = model_tokens(definition.added, definition.special, definition.tokens.size(), has_bert_role);
  for (size_t id = 0; id < own; ++id) vocabulary[definition.tokens[id]] = id;
  const bool whole = id_of(definition, "[CLS]") >= 0 && id_of(definition, "[SEP]") >= 0;
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added_tokens_json(definition.added, definition.special, definition.tokens)},
          {"normalizer",
           {{"type", "BertNormalizer"},
            {"clean_text", definition.normalization.clean_text},
            {"handle_chinese_chars", definition.normalization.space_chinese},
            {"strip_accents", definition.normalization.strip_accents},
            {"lowercase", definition.normalization.lowercase}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor", whole ? bert_template(definition) : json()},
          {"decoder", {{"type", "WordPiece"}, {"prefix", kContinuationPrefix}, {"cleanup", true}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", definition.tokens[static_cast<size_t>(definition.unknown)]},
            {"continuing_subword_prefix", kContinuationPrefix},
            {"max_input_chars_per_word", definition.longest_word},
            {"vocab", vocabulary}}}};
}

}  // namespace headshare
