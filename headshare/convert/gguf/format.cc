#include "headshare/convert/gguf/format.h"

#include "headshare/base/error.h"
#include "headshare/convert/gguf/gguf_decoder.h"
#include "headshare/convert/gguf/gguf_tokens.h"
#include "headshare/models/size.h"

namespace headshare {
namespace {

constexpr const char* kGgufName = "model.gguf";

void write_gguf_model(const ModelToWrite& model, const std::string& form, const fs::path& directory) {
  write_gguf(directory / kGgufName, gguf_of(model, gguf_architecture(model.options, form)));
}

ForeignModel read_gguf_model(const fs::path& directory) { return model_of_gguf(read_gguf(directory / kGgufName)); }

std::vector<std::string> gguf_losses(const ModelOptions& options, const std::string& form) {
  const int64_t bytes = measure(options).cache_bytes_per_token;
  std::vector<std::string> losses = {join_text("llama.cpp caches ", bytes / 2,
                                               " bytes per token in float16, which is its default, ", bytes,
                                               " in float32 (--cache-type-k f32 --cache-type-v f32)")};
  if (gguf_architecture(options, form) != "llama") {
    losses.emplace_back("llama.cpp reads gelu from a table in float16: log-probabilities differ by some 0.005");
  }
  return losses;
}

void check_is_ours(const fs::path& directory) {
  const fs::path path = directory / kGgufName;
  try {
    read_gguf(path).value(kGgufMark);
  } catch (const Error&) {  // files of others hold types that are not read here
    throw Error(
        join_text(path.string(), " was not written by headshare, so it is not overwritten; choose another name"));
  }
}

OutputKind gguf_directories() { return {.files = {kGgufName}, .check_is_one = check_is_ours}; }

}  // namespace

ForeignFormat gguf_format() {
  return {.name = "gguf",
          .help = {},
          .written =
              "a folder with model.gguf, in float32, for llama.cpp: decoders as gpt2 (learned, sinusoidal or no "
              "positions; starcoder for old versions) or llama (rotary positions, RMS norms, swiglu)",
          .output = gguf_directories(),
          .forms = gguf_architectures(),
          .why_not_write = why_not_gguf,
          .losses = gguf_losses,
          .write = write_gguf_model,
          .read_back = read_gguf_model};
}

}  // namespace headshare
