#include "headshare/text/hf_tokenizer.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"
#include "headshare/text/bpe_file.h"
#include "headshare/text/bpe_tokenizer.h"
#include "headshare/text/byte_alphabet.h"
#include "headshare/text/hf_parts.h"

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

}  // namespace

BpeDefinition bpe_from_hf_json(const json& object, const std::string& where) {
  refuse_lengths(object, where);
  refuse(!optional_member(object, "normalizer").is_null(), optional_member(object, "normalizer"), "normalizer", where);
  part_of_type(object, "decoder", "ByteLevel", where);
  part_of_type(object, "post_processor", "ByteLevel", where);
  const json& model = json_member(object, "model", where);
  const std::string model_name = where + ": model";
  check_model(model, model_name);
  const json& splitter = json_member(object, "pre_tokenizer", where);
  const std::string splitter_name = where + ": pre_tokenizer";
  const json& type = json_member(splitter, "type", splitter_name);
  refuse(type != "ByteLevel", type, "type", splitter_name);

  const auto added = added_tokens(object, where);
  BpeNames names;
  names.tokens = tokens_by_id(json_member(model, "vocab", model_name), added, model_name);
  for (const auto& [id, text] : added) names.special.push_back(id);
  for (const json& merge : json_list(model, "merges", model_name)) {
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
      added.push_back(special_token_json(static_cast<int32_t>(id), token));
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

json hf_json(const Tokenizer& tokenizer) {
  if (const auto* bpe = dynamic_cast<const BpeTokenizer*>(&tokenizer)) return hf_json_from_bpe(bpe->definition());
  const auto* wordpiece = dynamic_cast<const WordPieceTokenizer*>(&tokenizer);
  HS_CHECK(wordpiece != nullptr, "Hugging Face tokenizers have nothing like the tokenizer '", tokenizer.kind(),
           "'; train one of kind 'bpe' or 'wordpiece'");
  return hf_json_from_wordpiece(wordpiece->definition());
}

}  // namespace headshare
