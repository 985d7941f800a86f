#include "headshare/convert/hf/tokenizer.h"

#include "headshare/text/hf/hf_tokenizer.h"

namespace headshare {
namespace {

// `config`: what tokenizer_config.json says besides.
void write_files(const fs::path& directory, const Tokenizer& tokenizer, const EncoderOptions& model,
                 const nlohmann::json& content, nlohmann::json config) {
  constexpr std::pair<SpecialToken, const char*> kNames[] = {
      {SpecialToken::kPadding, "pad_token"},  {SpecialToken::kUnknown, "unk_token"},
      {SpecialToken::kClassify, "cls_token"}, {SpecialToken::kSeparate, "sep_token"},
      {SpecialToken::kMask, "mask_token"},    {SpecialToken::kBeginOfText, "bos_token"},
      {SpecialToken::kEndOfText, "eos_token"}};
  // The class that takes tokenizer.json as it stands; BertTokenizer would build its parts anew.
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  config["model_max_length"] = model.context;
  // Unless it is told to, that class gives no token_type_ids, and every text of a pair would be segment 0.
  config["model_input_names"] = model.segments > 1 ? nlohmann::json{"input_ids", "token_type_ids", "attention_mask"}
                                                   : nlohmann::json{"input_ids", "attention_mask"};
  for (const auto& [role, name] : kNames) {
    if (const auto id = tokenizer.special(role)) config[name] = tokenizer.decode({&*id, 1});
  }
  write_file(directory / "tokenizer.json", content.dump());
  write_file(directory / "tokenizer_config.json", config.dump(2) + "\n");
}

}  // namespace

void write_hf_tokenizer(const fs::path& directory, const Tokenizer& tokenizer, const EncoderOptions& model) {
  write_files(directory, tokenizer, model, hf_json(tokenizer), nlohmann::json::object());
}

void write_hf_words(const fs::path& directory, const Tokenizer& tokenizer, const std::vector<std::string>& words,
                    const EncoderOptions& model) {
  // Texts have words like "<unk>", which are three of ours.
  write_files(directory, tokenizer, model, hf_json_from_words(words), {{"split_special_tokens", true}});
}

}  // namespace headshare
