#include "headshare/convert/hf/tokenizer.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_text.h"
#include "headshare/models/encoder_decoder_options.h"
#include "headshare/text/hf/hf_tokenizer.h"

namespace headshare {
namespace {

bool tells_segments_apart(const ModelOptions& options) {
  const auto* encoder = options.find<EncoderOptions>();
  return encoder != nullptr && encoder->segments > 1;
}

// tokenizer_config.json.
nlohmann::json config_of(const ModelToWrite& model) {
  constexpr std::pair<SpecialToken, const char*> kNames[] = {
      {SpecialToken::kPadding, "pad_token"},  {SpecialToken::kUnknown, "unk_token"},
      {SpecialToken::kClassify, "cls_token"}, {SpecialToken::kSeparate, "sep_token"},
      {SpecialToken::kMask, "mask_token"},    {SpecialToken::kBeginOfText, "bos_token"},
      {SpecialToken::kEndOfText, "eos_token"}};
  nlohmann::json config;
  // The class that takes tokenizer.json as it stands; BertTokenizer would build its parts anew.
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  config["model_max_length"] = model.options.common().context;
  // Unless it is told to, that class gives no token_type_ids, and every text of a pair would be segment 0.
  config["model_input_names"] = tells_segments_apart(model.options)
                                    ? nlohmann::json{"input_ids", "token_type_ids", "attention_mask"}
                                    : nlohmann::json{"input_ids", "attention_mask"};
  // Texts have words like "<unk>", which are three of ours.
  if (!model.words.empty()) config["split_special_tokens"] = true;
  const Tokenizer& tokenizer = *model.tokenizers.target;
  for (const auto& [role, name] : kNames) {
    if (const auto id = tokenizer.special(role)) config[name] = tokenizer.decode({&*id, 1});
  }
  return config;
}

// Tells whether a tokenizer.json puts this token at borders of texts.
bool borders_texts(const nlohmann::json& content, const std::string& token) {
  return content.at("post_processor").dump().find(nlohmann::json(token).dump()) != std::string::npos;
}

// Throws Error for an encoder-decoder whose sources end with a token that a tokenizer.json does not add: transformers
// would translate otherwise.
void check_end_of_sources(const ModelToWrite& model, const nlohmann::json& content) {
  const auto* translator = model.options.find<EncoderDecoderOptions>();
  if (translator == nullptr) return;
  const Tokenizer& tokenizer = *model.tokenizers.target;
  const auto id = static_cast<int32_t>(translator->marks.end);
  const std::string end = tokenizer.decode({&id, 1});
  HS_CHECK(borders_texts(content, end), "sources of this model end with ", end,
           ", which a tokenizer.json of the kind '", tokenizer.kind(),
           "' does not add, so that transformers would translate otherwise; train with --tokenizer ",
           "wordpiece, or move the tokenizer out of the checkpoint to write the model without it");
}

}  // namespace

void write_hf_tokenizer(const fs::path& directory, const ModelToWrite& model) {
  HS_CHECK(model.tokenizers.joint(),
           "the model has a tokenizer for each side, and tokenizer.json holds one; move "
           "both out of the checkpoint to write the model without them");
  const nlohmann::json content =
      model.words.empty() ? hf_json(*model.tokenizers.target) : hf_json_from_words(model.words);
  check_end_of_sources(model, content);
  write_file(directory / "tokenizer.json", content.dump());
  write_file(directory / "tokenizer_config.json", json_text(config_of(model), 2) + "\n");
}

}  // namespace headshare
