#include "headshare/models/model_options.h"

#include "headshare/base/error.h"
#include "headshare/models/decoder.h"
#include "headshare/models/encoder.h"
#include "headshare/models/encoder_decoder.h"

namespace headshare {

const TransformerOptions& shared_options(const ModelOptions& options) {
  return std::visit([](const auto& one) -> const TransformerOptions& { return one; }, options);
}

std::string kind_name(const ModelOptions& options) {
  if (is_encoder_decoder(options)) return "encoder-decoder";
  return is_causal(options) ? "decoder" : "encoder";
}

std::string savings_text(const TransformerOptions& o) {
  return (o.layer_groups ? join_text(", layer-groups ", *o.layer_groups) : "") +
         (o.embedding_width ? join_text(", embedding-width ", *o.embedding_width) : "");
}

bool is_causal(const ModelOptions& options) { return std::holds_alternative<DecoderOptions>(options); }

bool is_encoder_decoder(const ModelOptions& options) { return std::holds_alternative<EncoderDecoderOptions>(options); }

void refuse_encoder_decoder(const ModelOptions& options, const std::string& where, const std::string& cannot) {
  HS_CHECK(!is_encoder_decoder(options), where, " is an encoder-decoder, which ", cannot,
           "; a decoder or an encoder is needed here");
}

std::shared_ptr<torch::nn::Module> make_model(const ModelOptions& resolved) {
  if (const auto* decoder = std::get_if<DecoderOptions>(&resolved)) return Decoder(*decoder).ptr();
  if (const auto* encoder = std::get_if<EncoderOptions>(&resolved)) return Encoder(*encoder).ptr();
  return EncoderDecoder(std::get<EncoderDecoderOptions>(resolved)).ptr();
}

nlohmann::json option_values(ModelOptions options) {
  return std::visit([](auto& one) { return to_json(fields(one)); }, options);
}

nlohmann::json stored_option_values(ModelOptions options) {
  return std::visit([](auto& one) { return to_json(stored_fields(one)); }, options);
}

ModelSize size_of(const ModelOptions& resolved) {
  return std::visit([](const auto& one) { return measure(one); }, resolved);
}

double parameter_bytes(const ModelOptions& resolved) {
  return std::visit([](const auto& one) { return parameter_bytes(one); }, resolved);
}

double training_bytes(const ModelOptions& resolved, const TrainingShape& shape) {
  return std::visit([&](const auto& one) { return training_bytes(one, shape); }, resolved);
}

double evaluation_bytes(const ModelOptions& resolved, const TrainingShape& shape) {
  return std::visit([&](const auto& one) { return evaluation_bytes(one, shape); }, resolved);
}

}  // namespace headshare
