#include "headshare/convert/hf/format.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/strings/format.h"
#include "headshare/convert/foreign/both_sides.h"
#include "headshare/convert/hf/model_types.h"
#include "headshare/convert/hf/tokenizer.h"
#include "headshare/convert/hf/written_config.h"
#include "headshare/models/size.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

// The tokenizer that load_tokenizer() finds, or what to do where there is none.
void add_own_tokenizer(const HfDirectory& directory, ForeignModel* foreign) {
  const fs::path file = tokenizer_in(directory.path());
  if (!file.empty()) {
    foreign->tokenizers = [file, model = foreign->options] {
      return one_tokenizer(load_foreign_tokenizer(file), model, file.string());
    };
    return;
  }
  const std::string advice = sentencepiece_advice(directory.path());
  foreign->without_tokenizer =
      advice.empty() ? directory.path().string() +
                           " has no tokenizer (no tokenizer.json, no vocab.txt, no vocab.json with merges.txt): the "
                           "model is of no use for text without one; give it with --tokenizer PATH"
                     : advice;
}

ForeignModel open_directory(const ForeignSource& source) {
  const auto directory = std::make_shared<const HfDirectory>(source);
  HS_CHECK(directory->value("format") != "headshare", source.path.string(), " is already a headshare model");
  ForeignModel foreign = type_to_open(*directory).open(directory);
  if (!foreign.options.kind().reads_text()) {
    HS_CHECK(source.tokenizer == nullptr, source.path.string(), " is ",
             foreign.options.kind().what_it_does(foreign.options), ": it reads no text; leave --tokenizer out");
  } else if (!foreign.tokenizers && foreign.without_tokenizer.empty()) {
    add_own_tokenizer(*directory, &foreign);
  }
  return foreign;
}

void write_directory(const ModelToWrite& model, const std::string& form, const fs::path& directory) {
  const HfModelType* type = type_to_write(model.options, form);
  HS_CHECK(type != nullptr, why_no_type_holds(model.options, form));
  const HfContent content = type->content(model);
  write_tensors(directory / "model.safetensors", content.tensors, {{"format", "pt"}});
  write_file(directory / "config.json", json_text(content.config, 2) + "\n");
  if (!content.generation.is_null()) {
    write_file(directory / "generation_config.json", json_text(content.generation, 2) + "\n");
  }
  if (!content.preprocessor.is_null()) {
    write_file(directory / "preprocessor_config.json", json_text(content.preprocessor, 2) + "\n");
  }
  if (model.tokenizers.target != nullptr) write_hf_tokenizer(directory, model);
}

ForeignModel read_directory_back(const fs::path& path) {
  const auto directory = std::make_shared<const HfDirectory>(ForeignSource(path));
  const std::string name = directory->value("model_type").get<std::string>();
  for (const HfModelType& type : hf_model_types()) {
    if (type.name == name && type.read_back != nullptr) return type.read_back(directory);
  }
  return type_to_open(*directory).open(directory);
}

// The keys and values of the model's own scheme, in the type that transformers computes in.
std::vector<std::string> hf_losses(const ModelOptions& options, const std::string&) {
  const int64_t bytes = measure(options).cache_bytes_per_token;
  if (bytes == 0) return {};
  return {join_text("transformers caches ", bytes, " bytes per token in float32")};
}

OutputKind own_directories() {
  return {.files = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt",
                    "generation_config.json", "preprocessor_config.json"},
          .check_is_one = check_has_mark};
}

// "gpt2, roberta (RoBERTa and HashFormers)": the types that are read, with what config.json does not call by name.
std::string types_text() {
  std::vector<std::string> types;
  for (const HfModelType& type : hf_model_types()) {
    if (type.open == nullptr) continue;
    types.push_back(type.models.size() == 1 ? type.name : type.name + " (" + list_text(type.models) + ")");
  }
  return list_text(types);
}

}  // namespace

ForeignFormat hf_format() {
  return {.name = "hf",
          .help = "a Hugging Face directory: config.json and model.safetensors; model types " + types_text(),
          .open = open_directory,
          .written = "a directory that transformers loads by its Auto classes: " + written_types_text() +
                     ". Heads of other schemes are rewritten if that is exact. An encoder that hashes words needs "
                     "--words",
          .output = own_directories(),
          .forms = written_types(),
          .why_not_write = why_no_type_holds,
          .losses = hf_losses,
          .write = write_directory,
          .read_back = read_directory_back};
}

}  // namespace headshare
