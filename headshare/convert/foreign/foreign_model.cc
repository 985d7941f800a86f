#include "headshare/convert/foreign/foreign_model.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/base/memory.h"
#include "headshare/base/notice.h"
#include "headshare/convert/foreign/both_sides.h"
#include "headshare/models/size.h"

namespace headshare {
namespace {

template <class Model, class Options>
Model read_values(const Options& options, const ForeignModel& foreign) {
  check_memory(parameter_bytes(options), "the converted model", "use a machine with more memory");
  const at::NoGradGuard no_grad;
  Model model(options);
  NamedTensors unfilled = model_tensors(*model);
  for (const MappedTensor& one : foreign.tensors) {
    const auto found = unfilled.find(one.target);
    HS_CHECK(found != unfilled.end(), "no tensor '", one.target, "' is left to take '", one.source, "'");
    const Tensor values = one.read();
    HS_CHECK(values.sizes() == found->second.sizes(), "'", one.source, "' gives '", one.target, "' the shape ",
             values.sizes(), ", it needs ", found->second.sizes());
    found->second.copy_(values);
    unfilled.erase(found);
  }
  HS_CHECK(unfilled.empty(), "no foreign tensor was found for '", unfilled.begin()->first, "'");
  model->eval();
  return model;
}

}  // namespace

TokenizerPair one_tokenizer(std::shared_ptr<Tokenizer> tokenizer, const ModelOptions& model, const std::string& where) {
  check_vocabulary(*tokenizer, model, where);
  const auto* translator = std::get_if<EncoderDecoderOptions>(&model);
  HS_CHECK(translator == nullptr || translator->source_vocabulary == translator->vocabulary, "the model has ",
           translator->source_vocabulary, " tokens in its source and ", translator->vocabulary,
           " in its target: it needs two tokenizers, and ", where, " is one");
  constexpr int64_t kPadding = 128;  // models round their vocabulary up by less
  const int64_t vocabulary = shared_options(model).vocabulary;
  if (tokenizer->words() == nullptr && tokenizer->vocabulary_size() + kPadding <= vocabulary) {
    notice(join_text(where, " has ", tokenizer->vocabulary_size(), " tokens, the model ", vocabulary,
                     ": make sure that it is this model's tokenizer"));
  }
  return both_sides(tokenizer, model, where);
}

Decoder read_decoder(const ForeignModel& foreign) {
  return read_values<Decoder>(std::get<DecoderOptions>(foreign.options), foreign);
}

Encoder read_encoder(const ForeignModel& foreign) {
  return read_values<Encoder>(std::get<EncoderOptions>(foreign.options), foreign);
}

EncoderDecoder read_encoder_decoder(const ForeignModel& foreign) {
  return read_values<EncoderDecoder>(std::get<EncoderDecoderOptions>(foreign.options), foreign);
}

}  // namespace headshare
