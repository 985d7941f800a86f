#include <cmath>

#include "headshare/attention/qk_norm.h"
#include "headshare/attention/schemes/gqa.h"
#include "headshare/base/error.h"
#include "headshare/convert/hf/families/layer_windows.h"
#include "headshare/convert/hf/families/llama_form.h"
#include "headshare/convert/hf/families/rotation.h"
#include "headshare/convert/hf/tensor_places.h"
#include "headshare/convert/hf/written_config.h"

namespace headshare {
namespace {

constexpr const char* kLlamaOutputLayer = "lm_head.weight";

// A family's tensors differ from ours by these numbers.
struct LlamaFolds {
  double norm_offset = 0;       // norms multiply by the weight plus this
  double embedding_factor = 1;  // on what the token embedding gives
  double normed_factor = 1;     // on projections that are normed: our epsilon beside theirs
  bool output_bias = true;      // where projections have biases
};

// RMS norms divide by sqrt(mean square + epsilon): c x under epsilon c^2 gives what x gives under epsilon.
double normed_factor(const DecoderOptions& options) {
  return options.attention.qk_norm ? std::sqrt(kQkNormEpsilon / options.norm_epsilon) : 1;
}

LlamaFolds folds_of(const LlamaFamily& family, const DecoderOptions& options) {
  LlamaFolds folds{.normed_factor = normed_factor(options), .output_bias = family.biases != LlamaBiases::kInputs};
  if (family.is_gemma) {
    folds.norm_offset = 1;
    folds.embedding_factor = std::sqrt(static_cast<double>(options.attention.d_model));
  }
  return folds;
}

// The weight of a linear layer, and its bias where the model has one.
void add_linear(const std::string& theirs, const std::string& ours, bool biased, double factor, TensorPlaces* places) {
  places->push_back({.theirs = theirs + ".weight", .ours = ours + ".weight", .factor = factor});
  if (biased) places->push_back({.theirs = theirs + ".bias", .ours = ours + ".bias", .factor = factor});
}

void add_attention(const DecoderOptions& options, const LlamaFolds& folds, const std::string& theirs,
                   const std::string& ours, TensorPlaces* places) {
  const bool biased = options.attention.projection_bias;
  add_linear(theirs + "q_proj", ours + "query", biased, folds.normed_factor, places);
  add_linear(theirs + "k_proj", ours + "key", biased, folds.normed_factor, places);
  add_linear(theirs + "v_proj", ours + "value", biased, 1, places);
  add_linear(theirs + "o_proj", ours + "output", biased && folds.output_bias, 1, places);
  if (biased && !folds.output_bias) places->push_back({.theirs = "", .ours = ours + "output.bias"});
  if (!options.attention.qk_norm) return;
  places->push_back({.theirs = theirs + "q_norm.weight", .ours = ours + "query_norm.weight"});
  places->push_back({.theirs = theirs + "k_norm.weight", .ours = ours + "key_norm.weight"});
}

void add_llama_block(const DecoderOptions& options, const LlamaFolds& folds, int64_t layer, TensorPlaces* places) {
  const std::string theirs = join_text("layers.", layer, "."), ours = join_text("blocks.", layer, ".");
  add_attention(options, folds, theirs + "self_attn.", ours + "attention.scheme.", places);
  for (const auto& [name, part] : {std::pair("gate", "gate"), {"up", "expand"}, {"down", "contract"}}) {
    add_linear(theirs + "mlp." + name + "_proj", ours + "feed_forward." + part, options.feed_forward_bias, 1, places);
  }
  for (const auto& [name, norm] : {std::pair("input", "attention"), {"post_attention", "feed_forward"}}) {
    places->push_back({.theirs = theirs + name + "_layernorm.weight",
                       .ours = ours + norm + "_norm.weight",
                       .offset = folds.norm_offset});
  }
}

// Every tensor of ours and its name without the prefix "model.". Where the output layer is a scaled embedding, the last
// norm divides by the scale.
TensorPlaces llama_places(const DecoderOptions& options, const LlamaFolds& folds) {
  TensorPlaces places = {
      {.theirs = "embed_tokens.weight", .ours = "token_embedding", .factor = folds.embedding_factor}};
  if (options.tie_embeddings) {
    places.back().copies = {kLlamaOutputLayer};
  } else {
    places.push_back({.theirs = kLlamaOutputLayer, .ours = "output_embedding"});
  }
  for (int64_t layer = 0; layer < options.layers; ++layer) add_llama_block(options, folds, layer, &places);
  places.push_back({.theirs = "norm.weight",
                    .ours = "norm.weight",
                    .offset = folds.norm_offset,
                    .factor = options.tie_embeddings ? 1 / folds.embedding_factor : 1});
  return places;
}

// Up to the width of its window, a layer computes what full attention does: this serves windows in no regular order.
void bound_context(const LlamaReading& reading, DecoderOptions* options, std::vector<std::string>* notes) {
  if (!reading.bound) return;
  notes->push_back(
      join_text("context is ", *reading.bound, " and not ", options->context,
                " (max_position_embeddings): a sliding_window of ", *reading.bound,
                " tokens equals full attention for texts up to that length, and headshare has no windows in this order "
                "of layers"));
  options->context = *reading.bound;
}

std::vector<std::string> fold_notes(const LlamaFamily& family, const LlamaFolds& folds) {
  std::vector<std::string> notes;
  if (!folds.output_bias) {
    notes.push_back(join_text(family.name, "'s output projections have no biases: ours are zeros, and train"));
  }
  if (family.is_gemma) {
    notes.emplace_back("the embedding has the factor sqrt(hidden_size) in it now, and norms the 1 of 1 + weight");
  }
  if (folds.normed_factor != 1) {
    notes.push_back(join_text("query and key projections are ", folds.normed_factor,
                              " times theirs: our norms of queries and keys have the epsilon ", kQkNormEpsilon,
                              ", not rms_norm_eps"));
  }
  return notes;
}

// Old files have the frequencies of the rotation among their tensors.
void leave_out_frequencies(int64_t layers, HfMapping* mapping) {
  mapping->leave_out("rotary_emb.inv_freq");
  for (int64_t layer = 0; layer < layers; ++layer) {
    mapping->leave_out(join_text("layers.", layer, ".self_attn.rotary_emb.inv_freq"));
  }
}

// Adds biases of 0 to projections without any.
ModelToWrite with_biases(const ModelToWrite& given) {
  DecoderOptions options = given.options.as<DecoderOptions>();
  if (options.attention.projection_bias) return given;
  options.attention.projection_bias = true;
  ModelToWrite model = given;
  model.options = resolve(options);
  model.tensors = with_zero_biases(given.tensors);
  return model;
}

}  // namespace

ForeignModel open_llama_form(const std::shared_ptr<const HfDirectory>& directory, const LlamaFamily& family) {
  const LlamaReading reading = read_llama_form(*directory, family);
  HS_CHECK(reading.refusals.empty(), reading.refusals.front());
  DecoderOptions options = reading.options;
  HS_CHECK(!options.attention.qk_norm || options.norm_epsilon > 0, directory->config_key("rms_norm_eps"),
           " is 0; headshare norms queries and keys with an epsilon");
  const LlamaFolds folds = folds_of(family, options);
  std::vector<std::string> notes = fold_notes(family, folds);
  bound_context(reading, &options, &notes);
  ForeignModel foreign{.options = options, .notes = std::move(notes)};
  HfMapping mapping(directory, without_prefix("model."));
  take_places(llama_places(options, folds), foreign.options, &mapping);
  leave_out_frequencies(options.layers, &mapping);
  mapping.finish(family.name, &foreign);
  return foreign;
}

HfContent llama_form_content(const ModelToWrite& given, const LlamaFamily& family) {
  const ModelToWrite model = family.biases == LlamaBiases::kInputs ? with_biases(given) : given;
  const auto& options = model.options.as<DecoderOptions>();
  HfContent content;
  content.tensors = fill_places(llama_places(options, folds_of(family, options)), model, "model.", {kLlamaOutputLayer});
  nlohmann::json& config = content.config =
      begin_config(family.type, family.name + "ForCausalLM", llama_keys(), options);
  config["hidden_act"] = options.feed_forward == FeedForwardKind::kSwiglu     ? "silu"
                         : options.feed_forward == FeedForwardKind::kGegluErf ? "gelu"
                                                                              : "gelu_pytorch_tanh";
  config["num_key_value_heads"] = key_value_heads(options.attention);
  if (family.biases == LlamaBiases::kAsked) config["attention_bias"] = options.attention.projection_bias;
  if (family.may_have_mlp_bias) config["mlp_bias"] = options.feed_forward_bias;
  if (family.window != LlamaWindow::kNone) write_windows(options, family.window == LlamaWindow::kAsked, &config);
  write_rotation(options, &config);
  add_ends_of_text(model, &config);
  return content;
}

int64_t key_value_heads(const AttentionOptions& resolved) {
  if (resolved.scheme == "mqa") return 1;
  return resolved.scheme == "gqa" ? groups_of(resolved) : resolved.heads;
}

std::vector<std::string> llama_form_objections(const DecoderOptions& o, const LlamaFormPlace& place) {
  const std::string no_place = ", which " + place.name + " has no place for; only headshare reads such a model";
  const std::string& scheme = o.attention.scheme;
  const Objections all = {
      {scheme != "mha" && scheme != "mqa" && scheme != "gqa",
       "the decoder's attention is " + scheme + no_place + "; a decoder of scheme mha, gqa or mqa can be written"},
      {has_uneven_groups(o.attention),
       "queries, keys and values of gqa differ in their numbers (--key-heads)" + no_place},
      {o.positions != PositionKind::kRotary, "the decoder's positions are not rotary (--positions)" + no_place},
      {o.attention.rotary_scaling.kind != RotaryScalingKind::kNone && !place.scaling,
       "the decoder's rotation is scaled (--rotary-scaling)" + no_place},
      {o.attention.rotary_dimensions.has_value(),
       "the decoder turns only a part of each head (--rotary-dimensions)" + no_place},
      {o.norm != NormKind::kRms, "the decoder's norms are not RMS norms (--norm)" + no_place},
      {!is_gated(o.feed_forward), "the decoder's feed-forward part is not gated (--feed-forward)" + no_place},
      {o.layer_groups.has_value(), "the decoder's layers share their parameters (--layer-groups)" + no_place},
      {o.embedding_width.has_value(), "the decoder's embedding is factorised (--embedding-width)" + no_place},
      {o.attention.qk_norm && !place.qk_norm, "the decoder norms queries and keys (--qk-norm)" + no_place},
      {o.feed_forward_bias && !place.feed_forward_bias,
       "the decoder's feed-forward part has biases (--feed-forward-bias)" + no_place},
      {place.windows && o.global_every && !place.global_layers,
       "some of the decoder's layers have no window (--global-every)" + no_place},
      {o.local_rotary_base.has_value(),
       "layers with a window have a rotary base of their own (--local-rotary-base)" + no_place},
      {o.attention.content_bias, "the decoder has a content bias (--content-bias)" + no_place},
      // This one comes last, because rewritten heads have biases that the model itself may lack.
      {o.attention.projection_bias && !place.projection_bias,
       "the decoder's projections have biases (--projection-bias)" + no_place}};
  AttentionOptions heads = o.attention;
  if (place.windows) heads.window.reset();
  return raised(all, why_not_head_width(heads, "the decoder", no_place));
}

}  // namespace headshare
