#include "headshare/convert/foreign/foreign_model.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/base/memory.h"
#include "headshare/base/notice.h"
#include "headshare/convert/foreign/both_sides.h"
#include "headshare/models/size.h"

namespace headshare {
TokenizerPair one_tokenizer(std::shared_ptr<Tokenizer> tokenizer, const ModelOptions& model, const std::string& where) {
  check_vocabulary(*tokenizer, model, where);
  const auto* translator = model.find<EncoderDecoderOptions>();
  HS_CHECK(translator == nullptr || translator->source_vocabulary == translator->vocabulary, "the model has ",
           translator->source_vocabulary, " tokens in its source and ", translator->vocabulary,
           " in its target: it needs two tokenizers, and ", where, " is one");
  constexpr int64_t kPadding = 128;  // models round their vocabulary up by less
  const int64_t vocabulary = model.common().vocabulary;
  if (tokenizer->words() == nullptr && tokenizer->vocabulary_size() + kPadding <= vocabulary) {
    notice(join_text(where, " has ", tokenizer->vocabulary_size(), " tokens, the model ", vocabulary,
                     ": make sure that it is this model's tokenizer"));
  }
  return both_sides(tokenizer, model, where);
}

AnyModel read_model(const ForeignModel& foreign) {
  const ModelOptions& options = foreign.options;
  check_memory(parameter_bytes(options), "the converted model", "use a machine with more memory");
  const at::NoGradGuard no_grad;
  AnyModel model{.options = options, .module = options.kind().make(options)};
  NamedTensors unfilled = model_tensors(*model.module);
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
  model.module->eval();
  return model;
}

}  // namespace headshare
