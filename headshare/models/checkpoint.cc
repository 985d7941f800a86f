#include "headshare/models/checkpoint.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/memory.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/format.h"
#include "headshare/data/hash.h"
#include "headshare/models/finite.h"
#include "headshare/models/size.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

constexpr uint64_t kMostConfigBytes = 16 << 20;
constexpr const char* kTokenizerFile = "tokenizer.json";
constexpr const char* kSourceTokenizerFile = "source_tokenizer.json";

const std::vector<std::pair<DType, at::ScalarType>>& type_pairs() {
  static const std::vector<std::pair<DType, at::ScalarType>> pairs = {
      {DType::kF32, at::kFloat}, {DType::kF64, at::kDouble}, {DType::kF16, at::kHalf},  {DType::kBF16, at::kBFloat16},
      {DType::kI64, at::kLong},  {DType::kI32, at::kInt},    {DType::kI16, at::kShort}, {DType::kI8, at::kChar},
      {DType::kU8, at::kByte},   {DType::kBool, at::kBool}};
  return pairs;
}

at::ScalarType torch_type(DType type, const std::string& where) {
  for (const auto& [ours, theirs] : type_pairs()) {
    if (ours == type) return theirs;
  }
  throw Error(join_text(where, " has type ", dtype_name(type), ", which is not supported"));
}

DType file_type(at::ScalarType type) {
  for (const auto& [ours, theirs] : type_pairs()) {
    if (theirs == type) return ours;
  }
  throw Error(join_text("tensors of type ", c10::toString(type), " cannot be saved"));
}

}  // namespace

Tensor copy_tensor(const TensorView& view, const std::string& where) {
  const Tensor tensor = at::empty(view.shape, torch_type(view.dtype, where));
  if (view.bytes > 0) std::memcpy(tensor.data_ptr(), view.data, view.bytes);
  return tensor;
}

NamedTensors read_tensors(const fs::path& path) {
  const SafetensorsFile file(path);
  NamedTensors tensors;
  for (const auto& [name, view] : file.tensors()) {
    tensors.emplace(name, copy_tensor(view, join_text(path.string(), ": tensor '", name, "'")));
  }
  return tensors;
}

NamedTensors read_weights(const fs::path& checkpoint) {
  const fs::path path = checkpoint / "model.safetensors";
  NamedTensors tensors = read_tensors(path);
  for (const auto& [name, tensor] : tensors) {
    check_finite(tensor, join_text(path.string(), ": tensor '", name, "'"),
                 "the model has diverged, or its checkpoint is damaged: take an earlier one");
  }
  return tensors;
}

void write_tensors(const fs::path& path, const NamedTensors& tensors,
                   const std::map<std::string, std::string>& metadata) {
  std::vector<Tensor> alive;  // the views point into these copies
  TensorMap views;
  for (const auto& [name, tensor] : tensors) {
    alive.push_back(tensor.detach().cpu().contiguous());
    views[name] = {.dtype = file_type(alive.back().scalar_type()),
                   .shape = alive.back().sizes().vec(),
                   .data = static_cast<const std::byte*>(alive.back().const_data_ptr()),
                   .bytes = alive.back().nbytes()};
  }
  write_safetensors(path, views, metadata);
}

NamedTensors model_tensors(const torch::nn::Module& model) {
  NamedTensors tensors;
  for (const Declared& one : declared_parameters(model)) tensors.emplace(one.name, one.tensor);
  return tensors;
}

namespace {

// Throws Error unless `tensors` has the names and shapes of `wanted` and floating-point numbers.
void check_tensors(const NamedTensors& wanted, const NamedTensors& tensors, const std::string& where) {
  for (const auto& [name, parameter] : wanted) {
    const auto found = tensors.find(name);
    HS_CHECK(found != tensors.end(), where, ": tensor '", name, "' is missing");
    HS_CHECK(found->second.sizes() == parameter.sizes(), where, ": tensor '", name, "' has shape ",
             found->second.sizes(), ", the configuration asks for ", parameter.sizes());
    HS_CHECK(found->second.is_floating_point(), where, ": tensor '", name, "' has type ",
             c10::toString(found->second.scalar_type()), ", wanted are floating-point numbers");
  }
  std::vector<std::string> known;
  for (const auto& [name, parameter] : wanted) known.push_back(name);
  for (const auto& [name, tensor] : tensors) {
    HS_CHECK(wanted.contains(name), where, ": tensor '", name, "' is not part of the model", did_you_mean(name, known));
  }
}

}  // namespace

void load_tensors(torch::nn::Module& model, const NamedTensors& tensors, const std::string& where) {
  const at::NoGradGuard no_grad;
  const NamedTensors wanted = model_tensors(model);
  check_tensors(wanted, tensors, where);
  for (const auto& [name, tensor] : tensors) wanted.at(name).copy_(tensor);
}

void load_shared_tensors(torch::nn::Module& model, const NamedTensors& tensors, const std::vector<std::string>& fresh,
                         const std::string& where) {
  NamedTensors shared;
  for (const auto& [name, parameter] : model_tensors(model)) {
    const auto found = tensors.find(name);
    const bool is_fresh = std::any_of(
        fresh.begin(), fresh.end(), [&, &path = name](const std::string& one) { return path.starts_with(one + "."); });
    if (found != tensors.end()) {
      shared.emplace(name, found->second);
    } else if (is_fresh) {
      shared.emplace(name, parameter.detach().clone());
    }
  }
  load_tensors(model, shared, where);
}

void check_vocabulary(const Tokenizer& tokenizer, const ModelOptions& options, const std::string& where) {
  const bool hashed = options.kind().hashes_words(options);
  const bool open = tokenizer.words() != nullptr;
  HS_CHECK(hashed || !open, where, " (", tokenizer.kind(),
           ") has no vocabulary, and the model has a row for each token of one: it is not this model's tokenizer");
  HS_CHECK(open || !hashed, where, " (", tokenizer.kind(),
           ") has a vocabulary, and the model hashes words: it is not this model's tokenizer, which is hash-md or "
           "hash-lsh");
  if (open) return;
  const int64_t vocabulary = options.common().vocabulary;
  HS_CHECK(tokenizer.vocabulary_size() <= vocabulary, where, " has ", tokenizer.vocabulary_size(),
           " tokens, the model only ", vocabulary, ": it is not this model's tokenizer");
}

void check_source_vocabulary(const Tokenizer& tokenizer, const ModelOptions& options, const std::string& where) {
  ModelOptions source = options;
  source.common().vocabulary = options.kind().source_vocabulary(options);
  check_vocabulary(tokenizer, source, where);
}

namespace {

// config.json notes a hash of the tokenizer that the model was trained with; a hash of another format version than ours
// cannot be checked.
constexpr const char* kTokenizerHash = "tokenizer_hash";
constexpr const char* kSourceTokenizerHash = "source_tokenizer_hash";

std::string hash_version(const nlohmann::json& tokenizer) {
  return join_text("v", tokenizer.at("version").get<int64_t>(), "-");
}

std::string tokenizer_hash(const nlohmann::json& tokenizer) {
  return hash_version(tokenizer) + content_hash(tokenizer.dump());
}

void check_tokenizer(const Tokenizer& tokenizer, const nlohmann::json& config, const char* key,
                     const std::string& where) {
  if (!config.contains(key)) return;  // the program that saved the model noted none
  const nlohmann::json& noted = config.at(key);
  HS_CHECK(noted.is_string(), "config.json: ", key, " must be a text, not ", brief_json(noted), "; to use ", where,
           " without a check, take it out");
  const auto written = noted.get<std::string>();
  const nlohmann::json content = tokenizer.to_json();
  if (!written.starts_with(hash_version(content))) return;
  HS_CHECK(written == tokenizer_hash(content), where,
           " is not the tokenizer that this model was trained with; put that one back, or to use ",
           "this one all the same, take \"", key, "\" out of config.json");
}

// Takes options that later versions brought (FieldOptions::since) out of `values` where they are at their defaults.
// Returns the first version that has the rest.
int64_t leave_out_unused(const ModelOptions& options, nlohmann::json* values) {
  const ModelKind& kind = options.kind();
  ModelOptions untouched = kind.beginning();
  const Fields known = kind.stored_fields(untouched);
  int64_t version = kind.since(options);
  for (const Field& one : known) {
    if (one.since > version && values->at(one.name) != one.value()) version = one.since;
  }
  // Other options existed before these values, which later versions brought.
  for (const AttentionOptions& one : kind.attentions(options)) {
    version = std::max(version, scheme_record(one.scheme).since);
  }
  const TransformerOptions& model = options.common();
  if (model.activation == ActivationKind::kSilu) version = std::max(version, kSiluFormatVersion);
  if (model.feed_forward == FeedForwardKind::kGegluErf || model.norms == NormPlacement::kBeforeExceptFirst) {
    version = std::max(version, kModernBertFormatVersion);
  }
  for (const Field& one : known) {
    if (one.since > version) values->erase(one.name);
  }
  return version;
}

// Writes the tokenizer and returns the hash of the written content.
std::string write_tokenizer(const fs::path& path, const Tokenizer& tokenizer) {
  const nlohmann::json content = tokenizer.to_json();
  write_file(path, content.dump());
  return tokenizer_hash(content);
}

}  // namespace

nlohmann::json model_config(const ModelOptions& options) {
  const ModelKind& kind = options.kind();
  nlohmann::json config = {{"format", "headshare"}};
  if (&kind != &kind_of<DecoderOptions>()) config["kind"] = kind.name();  // the first version had no other kind
  kind.note_more(options, &config);
  config["model"] = stored_option_values(options);
  config["format_version"] = leave_out_unused(options, &config["model"]);
  return config;
}

void save_model(const fs::path& directory, const ModelOptions& options, const torch::nn::Module& model,
                const Tokenizer* tokenizer, const Tokenizer* source) {
  if (source != nullptr) check_source_vocabulary(*source, options, "the source's tokenizer");
  if (tokenizer != nullptr) check_vocabulary(*tokenizer, options, "the tokenizer");
  make_directories(directory);
  nlohmann::json config = model_config(options);
  if (source != nullptr) config[kSourceTokenizerHash] = write_tokenizer(directory / kSourceTokenizerFile, *source);
  if (tokenizer != nullptr) config[kTokenizerHash] = write_tokenizer(directory / kTokenizerFile, *tokenizer);
  write_tensors(directory / "model.safetensors", model_tensors(model), {{"format", "pt"}});
  write_file(directory / "config.json", json_text(config, 2) + "\n");
}

void save_model(const fs::path& directory, const AnyModel& model, const TokenizerPair& tokenizers) {
  const Tokenizer* source = tokenizers.joint() ? nullptr : tokenizers.source.get();
  save_model(directory, model.options, *model.module, tokenizers.target.get(), source);
}

fs::path find_checkpoint(const fs::path& path) {
  HS_CHECK(!path.empty(), "the path of a model is empty: name a run directory or a checkpoint");
  HS_CHECK(fs::exists(path), "no model at ", path.string(), ": it does not exist");
  HS_CHECK(fs::is_directory(path), path.string(),
           " is a file; a model is a directory with config.json and model.safetensors");
  if (fs::exists(path / "config.json")) return path;
  for (const char* name : {"best", "average", "last"}) {
    const fs::path candidate = path / "checkpoints" / name;
    if (fs::exists(candidate / "config.json")) return candidate;
  }
  throw Error(join_text("no model in ", path.string(),
                        ": it has neither config.json nor checkpoints/best or checkpoints/last"));
}

namespace {

ModelOptions parse_options(const ModelKind& kind, const nlohmann::json& config, const std::string& where) {
  HS_CHECK(config.contains("model"), where, " has no \"model\" part: it is damaged");
  ModelOptions options = kind.beginning();
  Fields list = kind.stored_fields(options);
  from_json(list, config.at("model"), where);
  kind.take_more(config, where, &options);
  try {
    return kind.resolve(options);
  } catch (const Error& error) {
    throw Error(where + ": " + error.what());
  }
}

// Returns the kind that config.json names; a decoder's names none.
const ModelKind& stored_kind(const nlohmann::json& config, const std::string& where) {
  const auto named = config.find("kind");
  if (named == config.end()) return kind_of<DecoderOptions>();
  std::vector<std::string> known;
  for (const ModelKind* one : model_kinds()) {
    if (*named == one->name()) return *one;
    if (one != &kind_of<DecoderOptions>()) known.push_back("\"" + one->name() + "\"");
  }
  throw Error(join_text(where, ": the kind of model is ", brief_json(*named), "; this headshare knows ",
                        list_text(known), ", and decoders, which name none"));
}

}  // namespace

ModelOptions read_options(const fs::path& checkpoint) {
  const fs::path path = checkpoint / "config.json";
  return options_of_config(read_json_file(path, kMostConfigBytes), path.string());
}

ModelOptions options_of_config(const nlohmann::json& config, const std::string& where) {
  HS_CHECK(config.is_object(), where, " is no JSON object");
  const nlohmann::json format = config.value("format", nlohmann::json());
  HS_CHECK(format != kDiagnosticFormat, where, " belongs to a model of the diagnostic task ",
           config.value("task", nlohmann::json()).dump(),
           ", which has no text and no tokenizer: only `headshare compare --task` trains and scores such models");
  HS_CHECK(format == "headshare", where,
           " is not a headshare model; convert a Hugging Face model with `headshare convert --from hf`");
  const nlohmann::json version = config.value("format_version", nlohmann::json());
  HS_CHECK(version.is_number_integer() && version >= 1, where, " has no valid format_version");
  HS_CHECK(version <= kModelFormatVersion, where, " has format version ", version.dump(),
           "; this headshare reads up to ", kModelFormatVersion, ": use a newer one");
  return parse_options(stored_kind(config, where), config, where);
}

void check_weights(const fs::path& checkpoint, const ModelOptions& options) {
  const SafetensorsFile file(checkpoint / "model.safetensors");
  const std::string where = file.path().string();
  NamedTensors found;
  for (const auto& [name, view] : file.tensors()) {
    const auto type = torch_type(view.dtype, join_text(where, ": tensor '", name, "'"));
    found.emplace(name, at::empty(view.shape, at::TensorOptions(at::kMeta).dtype(type)));
  }
  const DeclareOn meta(at::kMeta);
  check_tensors(model_tensors(*options.kind().make(options)), found, where);
}

namespace {

constexpr const char* kNoTokenizer =
    " has no tokenizer.json; a converted model gets one with `headshare convert --tokenizer PATH`";

AnyModel load_values(const ModelOptions& options, const fs::path& checkpoint) {
  // Loading holds the model and, while it is filled, the tensors of the file.
  check_memory(2 * parameter_bytes(options), "loading " + checkpoint.string(), "use a machine with more memory");
  AnyModel model{.options = options, .module = options.kind().make(options)};
  load_tensors(*model.module, read_weights(checkpoint), (checkpoint / "model.safetensors").string());
  model.module->eval();
  return model;
}

// Reads the options of a checkpoint. Throws Error where they are those of another model.
template <class Model>
ModelOptions options_of(const fs::path& checkpoint) {
  using Options = std::remove_cvref_t<decltype(std::declval<Model>()->options())>;
  const ModelOptions options = read_options(checkpoint);
  HS_CHECK(options.find<Options>() != nullptr, checkpoint.string(), " is ", options.kind().what_it_does(options), "; ",
           kind_of<Options>().needed());
  return options;
}

template <class Model>
Model load_weights(const fs::path& checkpoint) {
  return load_values(options_of<Model>(checkpoint), checkpoint).template as<Model>();
}

template <class Model>
Loaded<Model> load(const fs::path& path) {
  Loaded<Model> loaded;
  loaded.directory = find_checkpoint(path);
  options_of<Model>(loaded.directory);  // a model of another kind is refused before its tokenizer is missed
  loaded.tokenizer = load_own_tokenizer(loaded.directory);
  HS_CHECK(loaded.tokenizer != nullptr, loaded.directory.string(), kNoTokenizer);
  loaded.model = load_weights<Model>(loaded.directory);
  loaded.model->read_words(loaded.tokenizer);
  return loaded;
}

}  // namespace

std::shared_ptr<Tokenizer> load_own_tokenizer(const fs::path& checkpoint) {
  const ModelOptions options = read_options(checkpoint);
  const fs::path path = checkpoint / "tokenizer.json";
  if (!fs::exists(path)) return nullptr;
  std::shared_ptr<Tokenizer> tokenizer = load_tokenizer(path);
  check_vocabulary(*tokenizer, options, path.string());
  check_tokenizer(*tokenizer, read_json_file(checkpoint / "config.json", kMostConfigBytes), kTokenizerHash,
                  path.string());
  return tokenizer;
}

AnyModel load_any_model(const fs::path& checkpoint) { return load_values(read_options(checkpoint), checkpoint); }

Decoder load_decoder(const fs::path& checkpoint) { return load_weights<Decoder>(checkpoint); }
Encoder load_encoder(const fs::path& checkpoint) { return load_weights<Encoder>(checkpoint); }
EncoderDecoder load_encoder_decoder(const fs::path& checkpoint) { return load_weights<EncoderDecoder>(checkpoint); }

LoadedModel load_model(const fs::path& path) { return load<Decoder>(path); }
LoadedEncoder load_encoder_model(const fs::path& path) { return load<Encoder>(path); }

LoadedVision load_vision_model(const fs::path& path) {
  LoadedVision loaded;
  loaded.directory = find_checkpoint(path);
  loaded.model = load_weights<VisionTransformer>(loaded.directory);
  return loaded;
}

LoadedTranslator load_translator(const fs::path& path) {
  LoadedTranslator loaded;
  loaded.directory = find_checkpoint(path);
  loaded.model = load_encoder_decoder(loaded.directory);
  loaded.tokenizers.target = load_own_tokenizer(loaded.directory);
  HS_CHECK(loaded.tokenizers.target != nullptr, loaded.directory.string(), kNoTokenizer);
  loaded.tokenizers.source = loaded.tokenizers.target;
  const fs::path source = loaded.directory / kSourceTokenizerFile;
  const nlohmann::json config = read_json_file(loaded.directory / "config.json", kMostConfigBytes);
  if (!fs::exists(source)) {
    HS_CHECK(!config.contains(kSourceTokenizerHash), loaded.directory.string(), " has no ", kSourceTokenizerFile,
             ", and its source has a tokenizer of its own: copy the file from where the model was trained");
    return loaded;
  }
  loaded.tokenizers.source = load_tokenizer(source);
  check_source_vocabulary(*loaded.tokenizers.source, loaded.model->options(), source.string());
  check_tokenizer(*loaded.tokenizers.source, config, kSourceTokenizerHash, source.string());
  return loaded;
}

}  // namespace headshare
