#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/convert/hf/families/encoder_decoder_family.h"
#include "headshare/convert/hf/tensor_places.h"
#include "headshare/convert/hf/written_config.h"
#include "headshare/models/transformer.h"

namespace headshare {
namespace {

constexpr const char* kShared = "shared.weight";
constexpr const char* kSource = "encoder.embed_tokens.weight";
constexpr const char* kTarget = "decoder.embed_tokens.weight";
constexpr const char* kOutput = "lm_head.weight";
constexpr const char* kFinalLogitsBias = "final_logits_bias";

BlockParts attention_parts(const std::string& theirs, const std::string& ours) {
  return {{theirs + ".q_proj", ours + ".scheme.query"},
          {theirs + ".k_proj", ours + ".scheme.key"},
          {theirs + ".v_proj", ours + ".scheme.value"},
          {theirs + ".out_proj", ours + ".scheme.output"},
          {theirs + "_layer_norm", ours + "_norm"}};
}

BlockParts block_parts(bool with_cross) {
  BlockParts parts = attention_parts("self_attn", "attention");
  const BlockParts cross = attention_parts("encoder_attn", "cross_attention");
  if (with_cross) parts.insert(parts.end(), cross.begin(), cross.end());
  parts.insert(
      parts.end(),
      {{"fc1", "feed_forward.expand"}, {"fc2", "feed_forward.contract"}, {"final_layer_norm", "feed_forward_norm"}});
  return parts;
}

// transformers reads `shared` where it ties all embeddings; else each side has its own, and the output layer too.
TensorPlaces embedding_places(const EncoderDecoderOptions& o) {
  if (o.share_embeddings && o.tie_embeddings) {
    return {{.theirs = kShared, .ours = "token_embedding", .copies = {kSource, kTarget, kOutput}}};
  }
  TensorPlaces places;
  if (o.share_embeddings) {
    places.push_back({.theirs = kShared, .ours = "token_embedding"});
  } else {
    places.push_back({.theirs = kSource, .ours = "source_embedding"});
    places.push_back({.theirs = kTarget, .ours = "token_embedding"});
    if (o.tie_embeddings) places.back().copies = {kOutput};
  }
  if (!o.tie_embeddings) places.push_back({.theirs = kOutput, .ours = "output_embedding"});
  return places;
}

// Every tensor of ours and its name without the prefix "model.".
TensorPlaces tensor_places(const EncoderDecoderOptions& o, int64_t unused_positions) {
  TensorPlaces places;
  if (o.output_bias) places.push_back({.theirs = kFinalLogitsBias, .ours = "output_bias", .shape = {1, o.vocabulary}});
  const TensorPlaces embeddings = embedding_places(o);
  places.insert(places.end(), embeddings.begin(), embeddings.end());
  if (o.positions == PositionKind::kLearned) {
    for (const auto& [theirs, ours] : {std::pair("encoder.embed_positions.weight", "source_position_embedding"),
                                       {"decoder.embed_positions.weight", "position_embedding"}}) {
      places.push_back({.theirs = theirs, .ours = ours, .unused_rows = unused_positions});
    }
  }
  add_blocks("encoder.layers.", block_parts(/*with_cross=*/false), o.layers, &places, "encoder.");
  add_blocks("decoder.layers.", block_parts(/*with_cross=*/true), *o.decoder_layers, &places, "decoder.");
  if (o.embedding_norm) {
    add_pair("encoder.layernorm_embedding", "source_embedding_norm", &places);
    add_pair("decoder.layernorm_embedding", "embedding_norm", &places);
  }
  if (o.norms == NormPlacement::kBefore) {
    add_pair("encoder.layer_norm", "encoder_norm", &places);
    add_pair("decoder.layer_norm", "decoder_norm", &places);
  }
  return places;
}

// Old files hold the table of sinusoids, perhaps rounded to half precision.
void leave_out_sinusoids(const EncoderDecoderOptions& o, HfMapping* mapping) {
  constexpr double kRounding = 5e-3;  // bfloat16 has a step of 1/256 below 1
  for (const char* name : {"encoder.embed_positions.weight", "decoder.embed_positions.weight"}) {
    if (!mapping->has(name)) continue;
    const std::string full = mapping->take(name, {o.context, o.attention.d_model});
    const Tensor found = mapping->directory().read(full);
    const double distance = (found - sinusoid_table(o)).abs().max().item<double>();
    HS_CHECK(distance < kRounding, mapping->where(), ": tensor '", full, "' differs from the sinusoids by up to ",
             distance, ", and headshare computes these; a model with other fixed positions cannot be converted");
    mapping->put_aside(full);
  }
}

// Zeros, as BART has, are no bias.
bool has_output_bias(const EncoderDecoderOptions& o, HfMapping* mapping) {
  const std::optional<std::string> full = mapping->full_name(kFinalLogitsBias);
  if (!full) return false;
  if (mapping->directory().read(*full).count_nonzero().item<int64_t>() > 0) return true;
  mapping->put_aside(mapping->take(kFinalLogitsBias, {1, o.vocabulary}));
  return false;
}

// Without ties, files of older programs have the one embedding that both sides read there; today's have one for each.
bool shares(const EncoderDecoderOptions& o, const HfMapping& mapping) {
  return o.share_embeddings ||
         (!o.tie_embeddings && mapping.has(kShared) && !mapping.has(kSource) && !mapping.has(kTarget));
}

// transformers has a table for each side, whatever the positions are.
void add_position_tables(const EncoderDecoderOptions& o, NamedTensors* tensors) {
  if (o.positions == PositionKind::kLearned) return;
  const bool fixed = o.positions == PositionKind::kSinusoidal;
  const Tensor table = fixed ? sinusoid_table(o) : at::zeros({o.context, o.attention.d_model});
  for (const char* name : {"source_position_embedding", "position_embedding"}) tensors->emplace(name, table);
}

}  // namespace

NamedTensors marian_tensors(const ModelToWrite& given) {
  ModelToWrite model = given;
  EncoderDecoderOptions options = model.options.as<EncoderDecoderOptions>();
  model.tensors = with_zero_biases(std::move(model.tensors));
  add_position_tables(options, &model.tensors);
  if (options.share_embeddings && !options.tie_embeddings) {  // transformers shares all embeddings or none
    options.share_embeddings = false;
    model.tensors.emplace("source_embedding", model.tensors.at("token_embedding").clone());
  }
  options.positions = PositionKind::kLearned;
  NamedTensors filled =
      fill_places(tensor_places(options, /*unused_positions=*/0), model, "model.", {kOutput, kFinalLogitsBias});
  filled.emplace(kFinalLogitsBias, at::zeros({1, options.vocabulary}));
  return filled;
}

ForeignModel read_marian_back(const std::shared_ptr<const HfDirectory>& directory, const EncoderDecoderFamily& family) {
  HfMapping mapping(directory, without_prefix("model."));
  EncoderDecoderOptions options = encoder_decoder_options(*directory, family);
  options.output_bias = true;
  options.positions = PositionKind::kLearned;
  options.sites.reset();
  options = resolve_read(*directory, options);
  ForeignModel foreign{.options = options};
  take_places(tensor_places(options, /*unused_positions=*/0), options, &mapping);
  mapping.finish(family.name, &foreign);
  return foreign;
}

ForeignModel open_encoder_decoder(const std::shared_ptr<const HfDirectory>& directory,
                                  const EncoderDecoderFamily& family) {
  HfMapping mapping(directory, without_prefix("model."));
  EncoderDecoderOptions options = encoder_decoder_options(*directory, family);
  options.share_embeddings = shares(options, mapping);
  options.output_bias = has_output_bias(options, &mapping);
  options = resolve_read(*directory, options);
  ForeignModel foreign{.options = options, .notes = encoder_decoder_notes(*directory, options)};
  take_places(tensor_places(options, family.unused_positions), options, &mapping);
  if (!options.share_embeddings) mapping.leave_out(kShared);
  if (options.positions == PositionKind::kSinusoidal) leave_out_sinusoids(options, &mapping);
  for (const char* version : {"encoder.version", "decoder.version"}) mapping.leave_out(version);  // of fairseq
  mapping.finish(family.name, &foreign);
  return foreign;
}

}  // namespace headshare
