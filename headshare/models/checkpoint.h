// Models on disk: a directory with model.safetensors (weights), config.json (options, format
// version) and tokenizer.json. Everything read here is untrusted.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "headshare/base/file.h"
#include "headshare/data/safetensors.h"
#include "headshare/models/decoder.h"
#include "headshare/models/encoder.h"
#include "headshare/models/encoder_decoder.h"
#include "headshare/models/model_kind.h"
#include "headshare/text/interface/tokenizer.h"

namespace headshare {

// What is read; version 2 brought encoders, version 3 heads of tasks, version 4 RMS norms, gated feed-forward parts and
// normed queries and keys, version 5 key widths that differ between layers, complex mixing and poolers with ReLU,
// version 6 layers that share their parameters and factorised embeddings, version 7 hashed embeddings and three-way
// heads, version 8 hashed embeddings that read letters, version 9 encoder-decoders and SiLU. Models are written as
// the first version that has what they need, which older programs read. Options (FieldOptions::since), schemes
// (SchemeRecord::since) and kinds of models (ModelKind::since) say which version brought them.
inline constexpr int64_t kModelFormatVersion = 9;
inline constexpr int64_t kSiluFormatVersion = 9;

// The format in config.json of a diagnostic task's model (tasks/diagnostics): known here to be refused in
// words, because it is no language model.
inline constexpr const char* kDiagnosticFormat = "headshare-diagnostic";

using NamedTensors = std::map<std::string, Tensor>;

// A copy of one tensor of a safetensors file, in its type. `where` (file and name) leads the Error
// about a type torch does not compute with.
Tensor copy_tensor(const TensorView& view, const std::string& where);

// All tensors of a safetensors file, copied to the CPU.
NamedTensors read_tensors(const fs::path& path);

// Those of a checkpoint's model.safetensors. Throws Error for a value that is not finite: what such a model computes
// means nothing.
NamedTensors read_weights(const fs::path& checkpoint);

// Writes tensors (moved to the CPU, made contiguous) atomically.
void write_tensors(const fs::path& path, const NamedTensors& tensors,
                   const std::map<std::string, std::string>& metadata = {});

// Every declared parameter by name, sharing memory with the model.
NamedTensors model_tensors(const torch::nn::Module& model);

// Copies tensors into the model's parameters. A missing, unknown or misshapen tensor is an Error that
// names it, both shapes and `where`.
void load_tensors(torch::nn::Module& model, const NamedTensors& tensors, const std::string& where);

// Copies the tensors that the model and `tensors` both have; throws Error as load_tensors does where shapes differ, or
// where one that the model has but for the modules `fresh` ("pooler", "task_head") is missing.
void load_shared_tensors(torch::nn::Module& model, const NamedTensors& tensors, const std::vector<std::string>& fresh,
                         const std::string& where);

// Throws Error when the tokenizer has ids the model does not know, or only one of the two has a vocabulary. `where`
// names the tokenizer.
void check_vocabulary(const Tokenizer& tokenizer, const ModelOptions& options, const std::string& where);

// The tokenizers of an encoder-decoder; one object where both sides have the same.
struct TokenizerPair {
  std::shared_ptr<Tokenizer> source, target;

  bool joint() const { return source == target; }
};

// Asks what check_vocabulary does of the tokenizer of the source, of a model that reads one.
void check_source_vocabulary(const Tokenizer& tokenizer, const ModelOptions& options, const std::string& where);

// Writes the files into `directory`, which is created: the options and the weights of `model`, which they made, and
// tokenizer.json, the target's, where there is one; the source's, where it is another, stands beside it in
// source_tokenizer.json.
void save_model(const fs::path& directory, const ModelOptions& options, const torch::nn::Module& model,
                const Tokenizer* tokenizer, const Tokenizer* source = nullptr);

// A model of any kind, in evaluation mode and on the CPU.
struct AnyModel {
  ModelOptions options;
  std::shared_ptr<torch::nn::Module> module;

  // The same as a Decoder, an Encoder, an EncoderDecoder; the caller knows that it is one.
  template <class Model>
  Model as() const {
    return Model(std::dynamic_pointer_cast<typename Model::ContainedType>(module));
  }
};

// Saves likewise.
void save_model(const fs::path& directory, const AnyModel& model, const TokenizerPair& tokenizers);

// Saves a Decoder, an Encoder, an EncoderDecoder likewise.
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

// Reads a model from a checkpoint directory, or from a run directory (its best checkpoint, else
// its averaged weights, else its last). A missing tokenizer is an Error, and so are another than the model was saved
// with, and a model of the other kind.
LoadedModel load_model(const fs::path& path);
LoadedEncoder load_encoder_model(const fs::path& path);
LoadedTranslator load_translator(const fs::path& path);

// The tokenizer in a checkpoint directory, checked as load_model does; null where there is none.
std::shared_ptr<Tokenizer> load_own_tokenizer(const fs::path& checkpoint);

// The model of a checkpoint directory alone, in evaluation mode; no tokenizer is looked for.
AnyModel load_any_model(const fs::path& checkpoint);
Decoder load_decoder(const fs::path& checkpoint);
Encoder load_encoder(const fs::path& checkpoint);
EncoderDecoder load_encoder_decoder(const fs::path& checkpoint);

// Throws Error when model.safetensors of a checkpoint lacks a tensor that its options ask for, has one of another
// shape, or one that they do not know. No value is read.
void check_weights(const fs::path& checkpoint, const ModelOptions& options);

// The checkpoint directory `path` stands for, as load_model resolves it.
fs::path find_checkpoint(const fs::path& path);

// The model options in a directory's config.json, resolved.
ModelOptions read_options(const fs::path& checkpoint);

}  // namespace headshare
