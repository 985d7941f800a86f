#include "headshare/convert/hf/tokenizer.h"

#include "headshare/text/hf_tokenizer.h"

namespace headshare {

void write_hf_tokenizer(const fs::path& directory, const Tokenizer& tokenizer, const EncoderOptions& model) {
  constexpr std::pair<SpecialToken, const char*> kNames[] = {
      {SpecialToken::kPadding, "pad_token"},  {SpecialToken::kUnknown, "unk_token"},
      {SpecialToken::kClassify, "cls_token"}, {SpecialToken::kSeparate, "sep_token"},
      {SpecialToken::kMask, "mask_token"},    {SpecialToken::kEndOfText, "eos_token"}};
  // The class that takes tokenizer.json as it stands; BertTokenizer would build its parts anew.
  nlohmann::json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"model_max_length", model.context}};
  // Unless it is told to, that class gives no token_type_ids, and every text of a pair would be segment 0.
  config["model_input_names"] = model.segments > 1 ? nlohmann::json{"input_ids", "token_type_ids", "attention_mask"}
                                                   : nlohmann::json{"input_ids", "attention_mask"};
  for (const auto& [role, name] : kNames) {
    if (const auto id = tokenizer.special(role)) config[name] = tokenizer.decode({&*id, 1});
  }
  write_file(directory / "tokenizer.json", hf_json(tokenizer).dump());
  write_file(directory / "tokenizer_config.json", config.dump(2) + "\n");
}

}  // namespace headshare
