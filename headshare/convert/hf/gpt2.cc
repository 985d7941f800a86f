#include "headshare/convert/hf/gpt2.h"

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"
#include "headshare/convert/hf/tensor_places.h"
#include "headshare/convert/hf/written_config.h"

namespace headshare {
namespace {

// GPT2Config's keys.
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

constexpr const char* kGpt2OutputLayer = "lm_head.weight";

// "transformer.h.0.ln_1.weight" and "h.0.ln_1.weight" are one: with and without the language model around it.
std::string plain_gpt2_name(const std::string& full) {
  constexpr std::string_view kPrefix = "transformer.";
  return full.starts_with(kPrefix) ? full.substr(kPrefix.size()) : full;
}

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
  TensorPlaces places = {{.theirs = "wpe.weight", .ours = "position_embedding"},
                         {.theirs = "wte.weight", .ours = "token_embedding"}};
  if (options.tie_embeddings) {
    places.back().copies = {kGpt2OutputLayer};
  } else {
    places.push_back({.theirs = kGpt2OutputLayer, .ours = "output_embedding"});
  }
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    add_block(layer, by_layer ? 1.0 / static_cast<double>(layer + 1) : 1.0, &places);
  }
  add_pair("ln_f", "norm", &places);
  return places;
}

DecoderOptions gpt2_options(const HfConfig& config) {
  refuse_what_we_lack(config);
  refuse_other_classes(config, {"GPT2Model", "GPT2LMHeadModel"});
  // GPT2Config's defaults, where they are not ours.
  DecoderOptions options{.context = 1024, .layers = 12, .dropout = 0.1};
  options.attention = {.d_model = 768, .heads = 12, .projection_bias = true, .attention_dropout = 0.1};
  read_keys(config, gpt2_keys(), stored_fields(options));
  options.activation = read_activation(config, "activation_function", ActivationKind::kGeluTanh);
  options.tie_embeddings = config.flag("tie_word_embeddings", true);
  if (!config.flag("scale_attn_weights", true)) options.attention.scale = 1;
  return resolve_read(config, options);
}

HfShape gpt2_shape(const HfConfig& config, const std::string& type) {
  return {.options = gpt2_options(config), .model_type = type};
}

// The notes say what differs in training, and what became of a factor.
std::vector<std::string> gpt2_notes(const HfConfig& config, const DecoderOptions& options, bool by_layer) {
  std::vector<std::string> notes;
  if (by_layer) notes.emplace_back("scale_attn_by_inverse_layer_idx is a factor on the query weights now");
  const nlohmann::json& embedding_dropout = config.value("embd_pdrop");
  if (!embedding_dropout.is_null() && embedding_dropout != options.dropout) {
    notes.push_back(join_text("one dropout serves embeddings and residual branches: resid_pdrop ", options.dropout,
                              " is kept, embd_pdrop ", brief_json(embedding_dropout), " is not"));
  }
  return notes;
}

ForeignModel open_gpt2(const std::shared_ptr<const HfDirectory>& directory) {
  const DecoderOptions options = gpt2_options(*directory);
  const bool by_layer = directory->flag("scale_attn_by_inverse_layer_idx", false);
  ForeignModel foreign{.options = options, .notes = gpt2_notes(*directory, options, by_layer)};
  HfMapping mapping(directory, plain_gpt2_name);
  take_places(gpt2_places(options, by_layer), options, &mapping);
  // Old checkpoints store the causal mask and the number that stands for minus infinity.
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    for (const char* name : {"attn.bias", "attn.masked_bias"}) mapping.leave_out(join_text("h.", layer, ".", name));
  }
  mapping.finish("GPT-2", &foreign);
  return foreign;
}

std::vector<std::string> gpt2_objections(const ModelOptions& options) {
  const auto& o = options.as<DecoderOptions>();
  const std::string no_place = ", which GPT-2 has no place for; only headshare reads such a model";
  const bool has_projection_bias = o.attention.projection_bias;
  const Objections all = {
      {o.attention.scheme != "mha",
       "the decoder's attention is " + o.attention.scheme + no_place + "; a decoder of scheme mha can be written"},
      {o.positions != PositionKind::kLearned, "the decoder's positions are not learned (--positions)" + no_place},
      {!has_projection_bias || !o.feed_forward_bias,
       join_text("the decoder has no biases in ", has_projection_bias ? "its feed-forward part" : "its projections",
                 ", and GPT-2 always has them (", has_projection_bias ? "--feed-forward-bias" : "--projection-bias",
                 ")")},
      {o.norm != NormKind::kLayer, "the decoder's norms are of another kind than GPT-2's (--norm rms)" + no_place},
      {o.feed_forward != FeedForwardKind::kPlain, "the decoder's feed-forward part is gated" + no_place},
      {o.layer_groups.has_value(), "the decoder's layers share their parameters (--layer-groups)" + no_place},
      {o.embedding_width.has_value(), "the decoder's embedding is factorised (--embedding-width)" + no_place},
      {o.attention.qk_norm, "the decoder norms queries and keys (--qk-norm)" + no_place},
      {o.attention.content_bias, "the decoder has a content bias" + no_place}};
  return raised(all, why_not_usual_heads(o.attention, "the decoder", no_place, /*may_be_unscaled=*/true));
}

HfContent gpt2_content(const ModelToWrite& model) {
  const auto& options = model.options.as<DecoderOptions>();
  HfContent content;
  content.tensors = fill_places(gpt2_places(options, /*by_layer=*/false), model, "transformer.", {kGpt2OutputLayer});
  content.config = begin_config("gpt2", "GPT2LMHeadModel", gpt2_keys(), options);
  content.config["activation_function"] = activation_name(options.activation);
  content.config["embd_pdrop"] = options.dropout;
  content.config["scale_attn_weights"] = has_usual_scale(options.attention);
  // GPT2Config's defaults are ids of its own vocabulary.
  const Tokenizer* tokenizer = model.tokenizers.target.get();
  const auto end = tokenizer == nullptr ? std::nullopt : tokenizer->special(SpecialToken::kEndOfText);
  for (const char* key : {"bos_token_id", "eos_token_id"}) {
    content.config[key] = end ? nlohmann::json(*end) : nlohmann::json();
  }
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
