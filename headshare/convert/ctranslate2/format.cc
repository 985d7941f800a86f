#include "headshare/convert/ctranslate2/format.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_text.h"
#include "headshare/convert/ctranslate2/ct2_decoder.h"
#include "headshare/convert/foreign/byte_spellings.h"
#include "headshare/convert/foreign/rotary_slowdown.h"
#include "headshare/convert/hf/written_config.h"
#include "headshare/models/size.h"
#include "headshare/text/text_borders.h"

namespace headshare {
namespace {

constexpr const char* kCt2Scaling = "rotary_scaling";

// config.json: the ends of texts by their spelling, and what readers of ours need besides.
nlohmann::json ct2_config(const ModelToWrite& model, const std::vector<std::string>& tokens) {
  const TransformerOptions& options = model.options.common();
  const Tokenizer* tokenizer = model.tokenizers.target.get();
  const auto end = tokenizer == nullptr ? std::nullopt : tokenizer->special(SpecialToken::kEndOfText);
  const std::string spelling = end ? tokens.at(static_cast<size_t>(*end)) : "";
  const auto begin = tokenizer == nullptr ? std::nullopt : begins_texts(*tokenizer);
  nlohmann::json config = {{"bos_token", begin ? tokens.at(static_cast<size_t>(*begin)) : spelling},
                           {"eos_token", spelling},
                           {"unk_token", spelling},
                           {"layer_norm_epsilon", options.norm_epsilon},
                           {"multi_query_attention", options.attention.scheme != "mha"},
                           {"max_position_embeddings", options.context},
                           {kExportMark, kModelFormatVersion}};
  const RotaryScaling& scaling = options.attention.rotary_scaling;
  if (scaling.kind != RotaryScalingKind::kNone) config[kCt2Scaling] = rotary_scaling_note(scaling);
  return config;
}

void write_ct2_folder(const ModelToWrite& model, const std::string& form, const fs::path& directory) {
  const std::vector<std::string> tokens = byte_spellings(model, "CTranslate2", "<extra_id_", ">");
  write_ct2(directory / "model.bin", ct2_of(model, ct2_caches_one_head(model.options, form)));
  write_file(directory / "config.json", json_text(ct2_config(model, tokens), 2) + "\n");
  write_file(directory / "vocabulary.json", nlohmann::json(tokens).dump() + "\n");
}

// A number of config.json. Throws Error, naming the file and the key, where it is none.
double number_in_config(const nlohmann::json& config, const fs::path& file, const char* key) {
  const bool there = config.is_object() && config.contains(key) && config.at(key).is_number();
  HS_CHECK(there, file.string(), " has no number '", key, "'");
  return config.at(key).get<double>();
}

ForeignModel read_ct2_folder(const fs::path& directory) {
  const fs::path file = directory / "config.json";
  const nlohmann::json config = json_or_discarded(read_file(file));
  const double context = number_in_config(config, file, "max_position_embeddings");
  HS_CHECK(context >= 1 && context <= 1 << 24, file.string(), ": max_position_embeddings is ", context);
  Ct2Settings settings{.norm_epsilon = number_in_config(config, file, "layer_norm_epsilon"),
                       .context = static_cast<int64_t>(context)};
  if (config.contains(kCt2Scaling)) {
    settings.scaling = noted_rotary_scaling(config.at(kCt2Scaling), join_text(file.string(), ": ", kCt2Scaling));
  }
  return model_of_ct2(read_ct2(directory / "model.bin"), settings);
}

std::vector<std::string> ct2_losses(const ModelOptions& options, const std::string& form) {
  const AttentionOptions& attention = options.common().attention;
  const int64_t all = options.common().layers * attention.heads * *attention.head_width * 2 * 4;
  if (!ct2_caches_one_head(options, form)) {
    return {join_text("CTranslate2 caches keys and values of all ", attention.heads, " heads: ", all,
                      " bytes per token in float32")};
  }
  return {join_text("CTranslate2 caches the one key and value: ", measure(options).cache_bytes_per_token,
                    " bytes per token in float32, with all ", attention.heads, " heads ", all),
          "forward_batch of texts of unequal length does not work with such a cache; for scoring write --to "
          "ctranslate2:scoring"};
}

OutputKind ct2_directories() {
  return {.files = {"model.bin", "config.json", "vocabulary.json"}, .check_is_one = check_has_mark};
}

}  // namespace

ForeignFormat ct2_format() {
  return {.name = "ctranslate2",
          .help = {},
          .written =
              "a folder for CTranslate2's Generator, in float32: decoders with learned, sinusoidal or no "
              "positions, or in Llama's form. ctranslate2:scoring caches every head, which batches of unequal "
              "length need",
          .output = ct2_directories(),
          .forms = {"generation", "scoring"},
          .why_not_write = [](const ModelOptions& options, const std::string&) { return why_not_ct2(options); },
          .losses = ct2_losses,
          .write = write_ct2_folder,
          .read_back = read_ct2_folder};
}

}  // namespace headshare
