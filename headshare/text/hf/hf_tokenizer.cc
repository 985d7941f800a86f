#include "headshare/text/hf/hf_tokenizer.h"

#include <algorithm>
#include <set>

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"
#include "headshare/text/bpe/bpe_file.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/bpe/byte_alphabet.h"
#include "headshare/text/hf/hf_parts.h"

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
  refuse(optional_bool(model, "ignore_merges", false, where), true, "ignore_merges", where);
}

// Accepts ByteLevel or a template that adds nothing; or RoBERTa's form, whose tokens are left to the task: encode adds
// nothing.
void check_post_processor(const json& object, const std::string& where) {
  const json& part = optional_member(object, "post_processor");
  if (part.is_null()) return;
  const std::string name = where + ": post_processor";
  const json& type = json_member(part, "type", name);
  if (type == "TemplateProcessing") {
    const TemplateOutline form = template_outline(part, name);
    return refuse(!adds_nothing(form) && form != kRobertaTemplate, form.first,
                  "a template other than <s> A </s> </s> B </s>,", name);
  }
  refuse(type != "ByteLevel" && type != "RobertaProcessing", type, "post_processor", where);
  if (type == "ByteLevel") return;
  for (const auto& [key, text] : {std::pair<const char*, const char*>{"cls", "<s>"}, {"sep", "</s>"}}) {
    const json& token = json_member(part, key, name);
    refuse(!token.is_array() || token.empty() || token[0] != text, token, key, name);
  }
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

}  // namespace

BpeDefinition bpe_from_hf_json(const json& object, const std::string& where, const TokensBeside& beside) {
  note_lengths(object, where);
  refuse(!optional_member(object, "normalizer").is_null(), optional_member(object, "normalizer"), "normalizer", where);
  part_of_type(object, "decoder", "ByteLevel", where);
  check_post_processor(object, where);
  const json& model = json_member(object, "model", where);
  const std::string model_name = where + ": model";
  check_model(model, model_name);
  const json& splitter = json_member(object, "pre_tokenizer", where);
  const std::string splitter_name = where + ": pre_tokenizer";
  const json& type = json_member(splitter, "type", splitter_name);
  refuse(type != "ByteLevel", type, "type", splitter_name);

  const json& vocabulary = json_member(model, "vocab", model_name);
  std::vector<AddedToken> added = added_tokens(object, beside, ids_in_vocabulary(vocabulary, model_name), where);
  BpeNames names;
  names.tokens = tokens_by_id(vocabulary, ids_and_texts(added), model_name);
  for (const json& merge : json_list(model, "merges", model_name)) {
    const std::string what = join_text(model_name, ": merge ", names.merges.size());
    if (merge.is_array() && merge.size() == 2) {
      names.merges.emplace_back(json_string(merge[0], what), json_string(merge[1], what));
    } else {
      names.merges.push_back(parse_merge(json_string(merge, what), what));
    }
  }
  set_added(std::move(added), &names);
  BpeDefinition definition = bpe_from_names(names, model_name);
  definition.add_prefix_space = optional_bool(splitter, "add_prefix_space", true, splitter_name);
  definition.split = optional_bool(splitter, "use_regex", true, splitter_name) ? SplitRule::kGpt2 : SplitRule::kNone;
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
  BpeDefinition definition = bpe_from_names(names, where);
  definition.add_prefix_space = files.add_prefix_space;
  return definition;
}

namespace {

// Returns RoBERTa's post-processor; null for vocabularies without its borders of texts.
json roberta_processing(const BpeDefinition& definition) {
  const auto id_of = [&](const char* text) -> json {
    for (const int32_t id : definition.special) {
      if (definition.tokens[static_cast<size_t>(id)] == text) return {text, id};
    }
    return nullptr;
  };
  const json classify = id_of("<s>");
  const json separate = id_of("</s>");
  if (classify.is_null() || separate.is_null()) return nullptr;
  return {{"type", "RobertaProcessing"},
          {"cls", classify},
          {"sep", separate},
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
  const json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", definition.add_prefix_space},
                           {"trim_offsets", true},
                           {"use_regex", definition.split == SplitRule::kGpt2}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added_tokens_json(definition.added, definition.special, definition.tokens)},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", roberta_processing(definition)},
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

json hf_json(const Tokenizer& tokenizer) {
  if (const auto* bpe = dynamic_cast<const BpeTokenizer*>(&tokenizer)) return hf_json_from_bpe(bpe->definition());
  if (const auto* unigram = dynamic_cast<const UnigramTokenizer*>(&tokenizer)) {
    return hf_json_from_unigram(unigram->definition());
  }
  const auto* wordpiece = dynamic_cast<const WordPieceTokenizer*>(&tokenizer);
  HS_CHECK(wordpiece != nullptr, "Hugging Face tokenizers have nothing like the tokenizer '", tokenizer.kind(),
           "'; train one of kind 'bpe' or 'wordpiece'");
  return hf_json_from_wordpiece(wordpiece->definition());
}

}  // namespace headshare
