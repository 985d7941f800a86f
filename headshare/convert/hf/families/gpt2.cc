#include "headshare/convert/hf/families/gpt2.h"

#include "headshare/base/error.h"
#include "headshare/convert/hf/families/gpt2_form.h"
#include "headshare/convert/hf/tensor_places.h"
#include "headshare/convert/hf/written_config.h"

namespace headshare {
namespace {

// A Conv1D [in, out] and its bias.
void add_conv(const std::string& theirs, const std::string& ours, TensorPlaces* places) {
  places->push_back({.theirs = theirs + ".weight", .ours = ours + ".weight", .transposed = true});
  places->push_back({.theirs = theirs + ".bias", .ours = ours + ".bias"});
}

// c_attn holds queries, keys and values side by side.
void add_block(int64_t layer, double query_factor, TensorPlaces* places) {
  const std::string theirs = join_text("h.", layer, ".");
  const std::string ours = join_text("blocks.", layer, ".");
  const std::string scheme = ours + "attention.scheme.";
  add_pair(theirs + "ln_1", ours + "attention_norm", places);
  for (const auto& [name, index] : {std::pair("query", 0), {"key", 1}, {"value", 2}}) {
    for (const char* kind : {".weight", ".bias"}) {
      places->push_back({.theirs = theirs + "attn.c_attn" + kind,
                         .ours = scheme + name + kind,
                         .part = index,
                         .parts = 3,
                         .transposed = kind == std::string_view(".weight"),
                         .factor = index == 0 ? query_factor : 1});
    }
  }
  add_conv(theirs + "attn.c_proj", scheme + "output", places);
  add_pair(theirs + "ln_2", ours + "feed_forward_norm", places);
  add_conv(theirs + "mlp.c_fc", ours + "feed_forward.expand", places);
  add_conv(theirs + "mlp.c_proj", ours + "feed_forward.contract", places);
}

// Every tensor of ours and its name without the prefix. `by_layer`: scale_attn_by_inverse_layer_idx, a factor on the
// queries of each layer.
TensorPlaces gpt2_places(const DecoderOptions& options, bool by_layer) {
  TensorPlaces places = begin_gpt2_places(options);
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    add_block(layer, by_layer ? 1.0 / static_cast<double>(layer + 1) : 1.0, &places);
  }
  add_pair("ln_f", "norm", &places);
  return places;
}

DecoderOptions gpt2_options(const HfConfig& config) {
  refuse_what_we_lack(config);
  refuse_other_classes(config, {"GPT2Model", "GPT2LMHeadModel"});
  return resolve_read(config, read_gpt2_form(config));
}

HfShape gpt2_shape(const HfConfig& config, const std::string& type) {
  return {.options = gpt2_options(config), .model_type = type};
}

ForeignModel open_gpt2(const std::shared_ptr<const HfDirectory>& directory) {
  const DecoderOptions options = gpt2_options(*directory);
  const bool by_layer = directory->flag("scale_attn_by_inverse_layer_idx", false);
  ForeignModel foreign{.options = options, .notes = gpt2_form_notes(*directory, options)};
  if (by_layer) foreign.notes.emplace_back("scale_attn_by_inverse_layer_idx is a factor on the query weights now");
  HfMapping mapping(directory, without_prefix(kGpt2Prefix));
  take_places(gpt2_places(options, by_layer), options, &mapping);
  // Old checkpoints store the causal mask and the number that stands for minus infinity.
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    for (const char* name : {"attn.bias", "attn.masked_bias"}) mapping.leave_out(join_text("h.", layer, ".", name));
  }
  mapping.finish("GPT-2", &foreign);
  return foreign;
}

std::vector<std::string> gpt2_objections(const ModelOptions& options) {
  return gpt2_form_objections(options.as<DecoderOptions>(), {.may_be_unscaled = true});
}

HfContent gpt2_content(const ModelToWrite& given) {
  const ModelToWrite model = in_gpt2_form(given);
  const auto& options = model.options.as<DecoderOptions>();
  HfContent content;
  content.tensors = fill_places(gpt2_places(options, /*by_layer=*/false), model, kGpt2Prefix, {kGpt2OutputLayer});
  content.config = begin_gpt2_config("gpt2", "GPT2LMHeadModel", model);
  content.config["scale_attn_weights"] = has_usual_scale(options.attention);
  return content;
}

}  // namespace

HfModelType gpt2_type() {
  return {.name = "gpt2",
          .models = {"GPT-2"},
          .kind = "decoder",
          .shape = gpt2_shape,
          .open = open_gpt2,
          .objections = gpt2_objections,
          .content = gpt2_content};
}

}  // namespace headshare
