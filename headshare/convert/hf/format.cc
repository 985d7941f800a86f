#include "headshare/convert/hf/format.h"

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/base/json_input.h"
#include "headshare/convert/foreign/both_sides.h"
#include "headshare/convert/hf/model_types.h"
#include "headshare/convert/hf/tokenizer.h"
#include "headshare/convert/hf/written_config.h"
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
  if (!foreign.tokenizers && foreign.without_tokenizer.empty()) add_own_tokenizer(*directory, &foreign);
  return foreign;
}

void write_directory(const ModelToWrite& model, const fs::path& directory) {
  const HfModelType* type = type_to_write(model.options);
  HS_CHECK(type != nullptr, why_no_type_holds(model.options));
  const HfContent content = type->content(model);
  write_tensors(directory / "model.safetensors", content.tensors, {{"format", "pt"}});
  write_file(directory / "config.json", content.config.dump(2) + "\n");
  if (model.tokenizers.target != nullptr) write_hf_tokenizer(directory, model);
}

OutputKind own_directories() {
  return {.files = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"},
          .check_is_one = [](const fs::path& path) {
            const nlohmann::json config = json_or_discarded(read_file(path / "config.json"));
            HS_CHECK(config.is_object() && config.contains(kExportMark), path.string(),
                     " was not written by headshare, so it is not overwritten; choose another name");
          }};
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
                     ", all of scheme mha. An encoder that hashes words needs --words",
          .output = own_directories(),
          .why_not_write = why_no_type_holds,
          .write = write_directory};
}

}  // namespace headshare
