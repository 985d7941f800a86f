#include "headshare/convert/foreign.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"
#include "headshare/base/memory.h"
#include "headshare/base/nearest.h"
#include "headshare/convert/hf/directory.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/size.h"

namespace headshare {

const std::vector<ForeignFormat>& foreign_formats() {
  static const std::vector<ForeignFormat> formats = {
      {"hf",
       "a Hugging Face directory: config.json and model.safetensors; model types gpt2, bert, roberta, xlm-roberta, "
       "distilbert, albert, HashFormers, marian, bart and mbart",
       open_hf},
  };
  return formats;
}

const ForeignFormat& find_format(const std::string& name) {
  std::vector<std::string> known;
  for (const ForeignFormat& format : foreign_formats()) {
    if (format.name == name) return format;
    known.push_back(format.name);
  }
  std::string list;
  for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
  throw Error(join_text("unknown format ", brief_text(name), did_you_mean(name, known), "; --from takes ", list));
}

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
