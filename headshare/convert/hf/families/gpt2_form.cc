#include "headshare/convert/hf/families/gpt2_form.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/strings/format.h"
#include "headshare/convert/hf/written_config.h"

namespace headshare {

const std::vector<HfKey>& gpt2_keys() {
  static const std::vector<HfKey> list = {
      {.theirs = "vocab_size", .ours = "vocabulary"},
      {.theirs = "n_positions", .ours = "context", .general = "max_position_embeddings"},
      {.theirs = "n_embd", .ours = "d-model", .general = "hidden_size"},
      {.theirs = "n_layer", .ours = "layers", .general = "num_hidden_layers"},
      {.theirs = "n_head", .ours = "heads", .general = "num_attention_heads"},
      {.theirs = "n_inner", .ours = "feed-forward-width"},
      {.theirs = "resid_pdrop", .ours = "dropout"},
      {.theirs = "attn_pdrop", .ours = "attention-dropout"},
      {.theirs = "layer_norm_epsilon", .ours = "norm-epsilon"},
      {.theirs = "initializer_range", .ours = "init-deviation"},
  };
  return list;
}

DecoderOptions read_gpt2_form(const HfConfig& config) {
  const std::string refusal = why_not_causal(config);
  HS_CHECK(refusal.empty(), refusal);
  // The classes' defaults, where they are not ours.
  DecoderOptions options{.context = 1024, .layers = 12, .dropout = 0.1};
  options.attention = {.d_model = 768, .heads = 12, .projection_bias = true, .attention_dropout = 0.1};
  read_keys(config, gpt2_keys(), stored_fields(options));
  options.activation = read_activation(config, "activation_function", ActivationKind::kGeluTanh);
  options.tie_embeddings = config.flag("tie_word_embeddings", true);
  if (!config.flag("scale_attn_weights", true)) options.attention.scale = 1;
  return options;
}

TensorPlaces begin_gpt2_places(const DecoderOptions& options) {
  TensorPlaces places = {{.theirs = "wpe.weight", .ours = "position_embedding"},
                         {.theirs = "wte.weight", .ours = "token_embedding"}};
  if (options.tie_embeddings) {
    places.back().copies = {kGpt2OutputLayer};
  } else {
    places.push_back({.theirs = kGpt2OutputLayer, .ours = "output_embedding"});
  }
  return places;
}

std::vector<std::string> gpt2_form_notes(const HfConfig& config, const DecoderOptions& options) {
  const nlohmann::json& embedding_dropout = config.value("embd_pdrop");
  if (embedding_dropout.is_null() || embedding_dropout == options.dropout) return {};
  return {join_text("one dropout serves embeddings and residual branches: resid_pdrop ", options.dropout,
                    " is kept, embd_pdrop ", brief_json(embedding_dropout), " is not")};
}

std::vector<std::string> gpt2_form_objections(const DecoderOptions& o, const Gpt2Form& form) {
  const std::string no_place = ", which " + form.name + " has no place for; only headshare reads such a model";
  const bool turned = o.positions == PositionKind::kRotary || o.positions == PositionKind::kAlibi;
  const bool has_scheme = std::find(form.schemes.begin(), form.schemes.end(), o.attention.scheme) != form.schemes.end();
  const Objections all = {
      {!has_scheme, "the decoder's attention is " + o.attention.scheme + no_place + "; a decoder of scheme " +
                        list_text(form.schemes, "or") + " can be written"},
      {has_uneven_groups(o.attention),
       "queries, keys and values of gqa differ in their numbers (--key-heads)" + no_place},
      {turned, "the decoder's positions are rotary or ALiBi's (--positions)" + no_place},
      {o.norm != NormKind::kLayer,
       "the decoder's norms are of another kind than " + form.name + "'s (--norm rms)" + no_place},
      {o.feed_forward != FeedForwardKind::kPlain, "the decoder's feed-forward part is gated" + no_place},
      {form.only_gelu_tanh && o.activation != ActivationKind::kGeluTanh,
       "the decoder's activation is not gelu-tanh (--activation)" + no_place},
      {o.layer_groups.has_value(), "the decoder's layers share their parameters (--layer-groups)" + no_place},
      {o.embedding_width.has_value(), "the decoder's embedding is factorised (--embedding-width)" + no_place},
      {o.attention.qk_norm, "the decoder norms queries and keys (--qk-norm)" + no_place},
      {o.attention.content_bias, "the decoder has a content bias (--content-bias)" + no_place}};
  return raised(all, why_not_usual_heads(o.attention, "the decoder", no_place, form.may_be_unscaled));
}

ModelToWrite in_gpt2_form(ModelToWrite model) {
  const auto& options = model.options.as<DecoderOptions>();
  model.tensors = with_zero_biases(std::move(model.tensors));
  const std::string positions = "position_embedding";
  const int64_t width = options.attention.d_model;
  if (options.positions == PositionKind::kSinusoidal) {
    model.tensors[positions] = sinusoids(options.context, width);
  } else if (options.positions == PositionKind::kNone) {
    model.tensors[positions] = at::zeros({options.context, width});
  }
  return model;
}

nlohmann::json begin_gpt2_config(const std::string& type, const std::string& architecture, const ModelToWrite& model) {
  const auto& options = model.options.as<DecoderOptions>();
  nlohmann::json config = begin_config(type, architecture, gpt2_keys(), options);
  config["activation_function"] = activation_name(options.activation);
  config["embd_pdrop"] = options.dropout;
  add_ends_of_text(model, &config);
  return config;
}

}  // namespace headshare
