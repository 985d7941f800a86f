#include "headshare/convert/hf/families/gpt_bigcode.h"

#include "headshare/base/error.h"
#include "headshare/convert/hf/families/gpt2_form.h"
#include "headshare/convert/hf/tensor_places.h"

namespace headshare {
namespace {

// Without multi_query, the rows of queries, keys and values are mixed by heads.
void add_bigcode_block(const DecoderOptions& options, int64_t layer, TensorPlaces* places) {
  const int64_t mixed_heads = options.attention.scheme == "mha" ? options.attention.heads : 0;
  const std::string theirs = join_text("h.", layer, "."), ours = join_text("blocks.", layer, ".");
  const std::string scheme = ours + "attention.scheme.";
  add_pair(theirs + "ln_1", ours + "attention_norm", places);
  for (const auto& [name, index] : {std::pair("query", 0), {"key", 1}, {"value", 2}}) {
    for (const char* kind : {".weight", ".bias"}) {
      places->push_back({.theirs = theirs + "attn.c_attn" + kind,
                         .ours = scheme + name + kind,
                         .part = index,
                         .parts = 3,
                         .stacked = true,
                         .mixed_heads = mixed_heads});
    }
  }
  add_pair(theirs + "attn.c_proj", scheme + "output", places);
  add_pair(theirs + "ln_2", ours + "feed_forward_norm", places);
  add_pair(theirs + "mlp.c_fc", ours + "feed_forward.expand", places);
  add_pair(theirs + "mlp.c_proj", ours + "feed_forward.contract", places);
}

TensorPlaces bigcode_places(const DecoderOptions& options) {
  TensorPlaces places = begin_gpt2_places(options);
  for (int64_t layer = 0; layer < options.layers; ++layer) add_bigcode_block(options, layer, &places);
  add_pair("ln_f", "norm", &places);
  return places;
}

DecoderOptions bigcode_options(const HfConfig& config) {
  refuse_what_we_lack(config);
  refuse_other_classes(config, {"GPTBigCodeModel", "GPTBigCodeForCausalLM"});
  DecoderOptions options = read_gpt2_form(config);
  options.attention.scheme = config.flag("multi_query", true) ? "mqa" : "mha";
  return resolve_read(config, options);
}

HfShape bigcode_shape(const HfConfig& config, const std::string& type) {
  return {.options = bigcode_options(config), .model_type = type};
}

ForeignModel open_bigcode(const std::shared_ptr<const HfDirectory>& directory) {
  const DecoderOptions options = bigcode_options(*directory);
  ForeignModel foreign{.options = options, .notes = gpt2_form_notes(*directory, options)};
  HfMapping mapping(directory, without_prefix(kGpt2Prefix));
  take_places(bigcode_places(options), options, &mapping);
  for (int64_t layer = 0; layer < options.layers; ++layer) mapping.leave_out(join_text("h.", layer, ".attn.bias"));
  mapping.finish("GPTBigCode", &foreign);
  return foreign;
}

std::vector<std::string> bigcode_objections(const ModelOptions& options) {
  return gpt2_form_objections(options.as<DecoderOptions>(), {.name = "GPTBigCode", .schemes = {"mqa"}});
}

HfContent bigcode_content(const ModelToWrite& given) {
  const ModelToWrite model = in_gpt2_form(given);
  HfContent content;
  content.tensors =
      fill_places(bigcode_places(model.options.as<DecoderOptions>()), model, kGpt2Prefix, {kGpt2OutputLayer});
  content.config = begin_gpt2_config("gpt_bigcode", "GPTBigCodeForCausalLM", model);
  content.config["multi_query"] = true;
  content.config["scale_attn_weights"] = true;  // vLLM takes it to be true whatever stands here
  return content;
}

}  // namespace

HfModelType gpt_bigcode_type() {
  return {.name = "gpt_bigcode",
          .models = {"GPTBigCode"},
          .kind = "decoder",
          .shape = bigcode_shape,
          .open = open_bigcode,
          .objections = bigcode_objections,
          .content = bigcode_content};
}

}  // namespace headshare
