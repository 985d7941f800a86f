// A checkpoint is a model on disk: a directory with model.safetensors (weights), config.json (options, format version)
// and tokenizer.json. Everything read here is untrusted.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "headshare/base/files/file.h"
#include "headshare/data/safetensors.h"
#include "headshare/models/decoder.h"
#include "headshare/models/encoder.h"
#include "headshare/models/encoder_decoder.h"
#include "headshare/models/model_kind.h"
#include "headshare/models/vision.h"
#include "headshare/text/interface/tokenizer.h"

namespace headshare {

// This program reads versions 1 to this one. Version 2 brought encoders, version 3 heads of tasks, version 4 RMS norms,
// gated feed-forward sub-layers and normed queries and keys, version 5 key widths that differ between layers, complex
// mixing and poolers with ReLU, version 6 layers that share their parameters and factorised embeddings, version 7
// hashed embeddings and three-way heads, version 8 hashed embeddings that read letters, version 9 encoder-decoders and
// SiLU, version 10 query, key and value heads of gqa that differ in number, version 11 output gates and attention
// sinks, version 12 scaled rotations, rotations of a part of each head, local windows, GEGLU with the exact GELU and
// first layers whose attention has no norm, version 13 vision transformers, version 14 the schemes of 2024 to 2026,
// version 15 latent vectors without a norm, whose width may differ between layers, and several of them, rotary modes of
// skv, and keys and values that meet those of the token before, version 16 layers that share keys and values,
// version 17 how large residuals of lrkv start. Models are written as the first version that has what they need, which
// older programs read. Options (FieldOptions::since), schemes (SchemeRecord::since) and kinds of models
// (ModelKind::since) say which version brought them.
inline constexpr int64_t kModelFormatVersion = 17;
inline constexpr int64_t kSiluFormatVersion = 9;
inline constexpr int64_t kModernBertFormatVersion = 12;

// config.json of a diagnostic task's model (tasks/diagnostics) has this format, known here so that the Error can say
// that such a model is no language model.
inline constexpr const char* kDiagnosticFormat = "headshare-diagnostic";

using NamedTensors = std::map<std::string, Tensor>;

// Copies one tensor of a safetensors file, in its type. `where` (file and name) leads the Error about a type torch does
// not compute with.
Tensor copy_tensor(const TensorView& view, const std::string& where);

// Reads all tensors of a safetensors file to the CPU.
NamedTensors read_tensors(const fs::path& path);

// Reads the tensors of a checkpoint's model.safetensors. Throws Error for a value that is not finite, because results
// of such a model mean nothing.
NamedTensors read_weights(const fs::path& checkpoint);

// Writes tensors (moved to the CPU, made contiguous) atomically.
void write_tensors(const fs::path& path, const NamedTensors& tensors,
                   const std::map<std::string, std::string>& metadata = {});

// Returns every declared parameter by name, sharing memory with the model.
NamedTensors model_tensors(const torch::nn::Module& model);

// Copies tensors into the model's parameters. A missing, unknown or misshapen tensor is an Error that
// names it, both shapes and `where`.
void load_tensors(torch::nn::Module& model, const NamedTensors& tensors, const std::string& where);

// Copies the tensors that the model and `tensors` both have. Throws Error as load_tensors does where shapes differ, or
// where a tensor of the model is missing that is not in one of the modules `fresh` ("pooler", "task_head").
void load_shared_tensors(torch::nn::Module& model, const NamedTensors& tensors, const std::vector<std::string>& fresh,
                         const std::string& where);

// Throws Error when the tokenizer has ids the model does not know, or only one of the two has a vocabulary. `where`
// names the tokenizer.
void check_vocabulary(const Tokenizer& tokenizer, const ModelOptions& options, const std::string& where);

// A TokenizerPair holds the tokenizers of an encoder-decoder; one object where both sides have the same.
struct TokenizerPair {
  std::shared_ptr<Tokenizer> source, target;

  bool joint() const { return source == target; }
};

// Checks the tokenizer of the source, of a model that reads one, as check_vocabulary() checks the target's.
void check_source_vocabulary(const Tokenizer& tokenizer, const ModelOptions& options, const std::string& where);

// Creates `directory` and writes the options and the weights of `model`, which these options made, and tokenizer.json,
// the target's, where there is one. The source's, where it is another, stands beside it in source_tokenizer.json.
void save_model(const fs::path& directory, const ModelOptions& options, const torch::nn::Module& model,
                const Tokenizer* tokenizer, const Tokenizer* source = nullptr);

// AnyModel holds a model of any kind, in evaluation mode and on the CPU.
struct AnyModel {
  ModelOptions options;
  std::shared_ptr<torch::nn::Module> module;

  // Returns the same model as a Decoder, an Encoder, an EncoderDecoder or a VisionTransformer; the caller knows that it
  // is one.
  template <class Model>
  Model as() const {
    return Model(std::dynamic_pointer_cast<typename Model::ContainedType>(module));
  }
};

// Saves a model of any kind in the same files.
void save_model(const fs::path& directory, const AnyModel& model, const TokenizerPair& tokenizers);

// Saves a Decoder, an Encoder or an EncoderDecoder in the same files.
template <class Contained>
void save_model(const fs::path& directory, const torch::nn::ModuleHolder<Contained>& model,
                const Tokenizer* tokenizer) {
  save_model(directory, model->options(), *model, tokenizer);
}
template <class Contained>
void save_model(const fs::path& directory, const torch::nn::ModuleHolder<Contained>& model,
                const TokenizerPair& tokenizers) {
  save_model(directory, AnyModel{model->options(), model.ptr()}, tokenizers);
}

template <class Model>
struct Loaded {
  Model model{nullptr};  // in evaluation mode, on the CPU
  std::shared_ptr<Tokenizer> tokenizer;
  fs::path directory;
};
using LoadedModel = Loaded<Decoder>;
using LoadedEncoder = Loaded<Encoder>;

struct LoadedTranslator {
  EncoderDecoder model{nullptr};  // in evaluation mode, on the CPU
  TokenizerPair tokenizers;
  fs::path directory;
};

// Reads a model from a checkpoint directory, or from a run directory (its best checkpoint, else its averaged weights,
// else its last). Throws Error for a missing tokenizer, for another tokenizer than the model was saved with, and for a
// model of another kind.
LoadedModel load_model(const fs::path& path);
LoadedEncoder load_encoder_model(const fs::path& path);
LoadedTranslator load_translator(const fs::path& path);

struct LoadedVision {
  VisionTransformer model{nullptr};  // in evaluation mode, on the CPU
  fs::path directory;
};

// Reads a vision transformer, which has no tokenizer, from where load_model() looks.
LoadedVision load_vision_model(const fs::path& path);

// Reads the tokenizer in a checkpoint directory, checked as load_model does; null where there is none.
std::shared_ptr<Tokenizer> load_own_tokenizer(const fs::path& checkpoint);

// Reads the model of a checkpoint directory, in evaluation mode, and looks for no tokenizer.
AnyModel load_any_model(const fs::path& checkpoint);
Decoder load_decoder(const fs::path& checkpoint);
Encoder load_encoder(const fs::path& checkpoint);
EncoderDecoder load_encoder_decoder(const fs::path& checkpoint);

// Throws Error when model.safetensors of a checkpoint lacks a tensor that its options ask for, has one of another
// shape, or one that they do not know. No value is read.
void check_weights(const fs::path& checkpoint, const ModelOptions& options);

// Returns the checkpoint directory that `path` stands for, as load_model resolves it.
fs::path find_checkpoint(const fs::path& path);

// Reads the model options in a directory's config.json and resolves them.
ModelOptions read_options(const fs::path& checkpoint);

// Returns what config.json says of a model's options: the format, its version, the kind and the options.
nlohmann::json model_config(const ModelOptions& options);

// Reads what model_config() returned, of this version or an earlier one, and resolves the options. `where` leads the
// Error.
ModelOptions options_of_config(const nlohmann::json& config, const std::string& where);

}  // namespace headshare
