#include "headshare/host/sample_text.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

template <class Model>
Model as_trained(const Model& model) {
  auto options = model->options();
  const std::string& of = scheme_record(options.attention.scheme).weights_of;
  if (of.empty()) return model;
  options.attention.scheme = of;
  Model trained(resolve(options));
  load_tensors(*trained, model_tensors(*model), "the model");
  trained->eval();
  return trained;
}

// A window stands between these tokens.
struct WindowEnds {
  std::vector<int64_t> before, after;

  int64_t length() const { return static_cast<int64_t>(before.size() + after.size()); }
};

Tensor windows_of(const SampleText& text, const TransformerOptions& model, const Tokenizer* tokenizer,
                  const WindowEnds& ends) {
  HS_CHECK(tokenizer->words() == nullptr, text.option,
           " is not read for models with hashed embeddings; leave it out: weights alone count then");
  const TokenData tokens = open_tokens(text.files, DataOptions(), *tokenizer, text.progress);
  const int64_t T = model.context - ends.length();
  HS_CHECK(tokens.size() >= T, "the sample text has ", plural(static_cast<size_t>(tokens.size()), "token"),
           ", fewer than the ", T, " of the model's windows; give more text");
  const int64_t rows = std::max<int64_t>(1, std::min(tokens.size(), text.tokens) / T);
  if (rows * T < model.attention.d_model) {
    notice(join_text("the sample has ", plural(static_cast<size_t>(rows * T), "token"), " for a model width of ",
                     model.attention.d_model, ": layers are fitted to little more than those; take more text"));
  }
  Tensor ids = at::empty({rows, model.context}, at::kLong);
  for (int64_t row = 0; row < rows; ++row) {
    auto* to = ids.data_ptr<int64_t>() + row * model.context;
    to = std::copy(ends.before.begin(), ends.before.end(), to);
    tokens.copy(row * T, T, to);
    std::copy(ends.after.begin(), ends.after.end(), to + T);
  }
  return ids;
}

void check_tokenizer(const SampleText& text, const Tokenizer* tokenizer) {
  HS_CHECK(tokenizer != nullptr, "the model has no tokenizer.json, so ", text.option, " cannot be read; leave it out");
}

}  // namespace

Tensor read_sample(const SampleText& text, const DecoderOptions& model, const Tokenizer* tokenizer) {
  if (text.files.empty()) return {};
  check_tokenizer(text, tokenizer);
  return windows_of(text, model, tokenizer, {});
}

Tensor read_sample(const SampleText& text, const EncoderOptions& model, const Tokenizer* tokenizer) {
  if (text.files.empty()) return {};
  check_tokenizer(text, tokenizer);
  const auto first = tokenizer->special(SpecialToken::kClassify), last = tokenizer->special(SpecialToken::kSeparate);
  const bool between = first && last && model.context > 2;
  return windows_of(text, model, tokenizer, between ? WindowEnds{{*first}, {*last}} : WindowEnds());
}

Decoder load_as_trained(const fs::path& directory, const DecoderOptions&) {
  return as_trained(load_decoder(directory));
}
Encoder load_as_trained(const fs::path& directory, const EncoderOptions&) {
  return as_trained(load_encoder(directory));
}

}  // namespace headshare
