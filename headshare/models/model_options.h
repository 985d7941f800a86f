// The options of a model of any kind, and what follows from them whatever the kind.
#pragma once

#include <variant>

#include "headshare/models/size.h"

namespace headshare {

using ModelOptions = std::variant<DecoderOptions, EncoderOptions, EncoderDecoderOptions>;

// What all kinds have in common.
const TransformerOptions& shared_options(const ModelOptions& options);

// "decoder", "encoder", "encoder-decoder".
std::string kind_name(const ModelOptions& options);

// ", layer-groups 1, embedding-width 128": what a model saves parameters by besides its attention; "" where it does
// not.
std::string savings_text(const TransformerOptions& options);

// Whether a token sees those before it alone; such a model continues text.
bool is_causal(const ModelOptions& options);

// Whether it reads one sequence and writes another.
bool is_encoder_decoder(const ModelOptions& options);

// Throws Error led by `where` for an encoder-decoder: `cannot` says what has not been built for them ("is not
// analysed").
void refuse_encoder_decoder(const ModelOptions& options, const std::string& where, const std::string& cannot);

// A module of these options with uninitialised parameters; under DeclareOn(kMeta) it takes no memory.
std::shared_ptr<torch::nn::Module> make_model(const ModelOptions& resolved);

// What a user sets, and everything that a checkpoint's config.json holds.
nlohmann::json option_values(ModelOptions options);
nlohmann::json stored_option_values(ModelOptions options);

// measure() and the estimates of size.h, of resolved options.
ModelSize size_of(const ModelOptions& resolved);
double parameter_bytes(const ModelOptions& resolved);
double training_bytes(const ModelOptions& resolved, const TrainingShape& shape);
double evaluation_bytes(const ModelOptions& resolved, const TrainingShape& shape);

}  // namespace headshare
