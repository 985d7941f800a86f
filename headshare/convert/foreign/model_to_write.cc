#include "headshare/convert/foreign/model_to_write.h"

#include "headshare/base/error.h"
#include "headshare/convert/foreign/closed_vocabulary.h"
#include "headshare/models/finite.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

ModelToWrite closed_model(const fs::path& checkpoint, const std::vector<std::string>& words) {
  const LoadedEncoder loaded = load_encoder_model(checkpoint);
  const Encoder closed = close_vocabulary(loaded.model, *loaded.tokenizer, words);
  return {.options = closed->options(),
          .tensors = model_tensors(*closed),
          .tokenizers = {.source = loaded.tokenizer, .target = loaded.tokenizer},
          .words = words};
}

}  // namespace

TokenizerPair tokenizers_in(const fs::path& checkpoint) {
  TokenizerPair pair;
  if (const fs::path file = checkpoint / "tokenizer.json"; fs::exists(file)) pair.target = load_tokenizer(file);
  pair.source = pair.target;
  if (const fs::path file = checkpoint / "source_tokenizer.json"; fs::exists(file)) pair.source = load_tokenizer(file);
  return pair;
}

ModelOptions options_to_write(const fs::path& checkpoint, const std::vector<std::string>& words) {
  const ModelOptions options = read_options(checkpoint);
  if (words.empty()) return options;
  const auto* encoder = options.find<EncoderOptions>();
  HS_CHECK(encoder != nullptr && is_hashed(encoder->embedding), checkpoint.string(),
           " has a vocabulary; --words is for encoders that hash words");
  return closed_options(*encoder, words);
}

ModelToWrite model_to_write(const fs::path& checkpoint, const std::vector<std::string>& words) {
  if (!words.empty()) return closed_model(checkpoint, words);
  const AnyModel model = load_any_model(checkpoint);
  return {.options = model.options, .tensors = model_tensors(*model.module), .tokenizers = tokenizers_in(checkpoint)};
}

void check_writable_values(const ModelToWrite& model, const std::string& tensor) {
  check_finite(model.tensors.at(tensor), join_text("the ", model.options.kind().name(), ": tensor '", tensor, "'"),
               "training has diverged: export an earlier checkpoint, or train with a smaller --learning-rate");
}

}  // namespace headshare
