#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/convert/hf/encoder_decoder_family.h"
#include "headshare/convert/hf/encoder_tensors.h"
#include "headshare/models/transformer.h"

namespace headshare {
namespace {

constexpr const char* kShared = "shared.weight";
constexpr const char* kSource = "encoder.embed_tokens.weight";
constexpr const char* kTarget = "decoder.embed_tokens.weight";
constexpr const char* kOutput = "lm_head.weight";
constexpr const char* kOutputBias = "final_logits_bias";

// "model.encoder.x" and "encoder.x" are one: with and without the output layer around the model.
std::string plain_name(const std::string& full) {
  constexpr std::string_view kPrefix = "model.";
  return full.starts_with(kPrefix) ? full.substr(kPrefix.size()) : full;
}

TensorNames attention_parts(const std::string& theirs, const std::string& ours) {
  return {{theirs + ".q_proj", ours + ".scheme.query"},
          {theirs + ".k_proj", ours + ".scheme.key"},
          {theirs + ".v_proj", ours + ".scheme.value"},
          {theirs + ".out_proj", ours + ".scheme.output"},
          {theirs + "_layer_norm", ours + "_norm"}};
}

TensorNames block_parts(bool with_cross) {
  TensorNames parts = attention_parts("self_attn", "attention");
  const TensorNames cross = attention_parts("encoder_attn", "cross_attention");
  if (with_cross) parts.insert(parts.end(), cross.begin(), cross.end());
  parts.insert(
      parts.end(),
      {{"fc1", "feed_forward.expand"}, {"fc2", "feed_forward.contract"}, {"final_layer_norm", "feed_forward_norm"}});
  return parts;
}

// Every tensor of ours but for embeddings, positions and the output bias.
TensorNames tensor_names(const EncoderDecoderOptions& o) {
  TensorNames names;
  add_blocks("encoder.layers.", block_parts(/*with_cross=*/false), o.layers, &names, "encoder.");
  add_blocks("decoder.layers.", block_parts(/*with_cross=*/true), *o.decoder_layers, &names, "decoder.");
  if (o.embedding_norm) {
    add_pair("encoder.layernorm_embedding", "source_embedding_norm", &names);
    add_pair("decoder.layernorm_embedding", "embedding_norm", &names);
  }
  if (o.norms == NormPlacement::kBefore) {
    add_pair("encoder.layer_norm", "encoder_norm", &names);
    add_pair("decoder.layer_norm", "decoder_norm", &names);
  }
  return names;
}

// The shape of each of our tensors, those of blocks by the first block's names.
std::map<std::string, std::vector<int64_t>> shapes(EncoderDecoderOptions one_block) {
  const DeclareOn meta(at::kMeta);
  one_block.layers = 1;
  one_block.decoder_layers = 1;
  std::map<std::string, std::vector<int64_t>> found;
  for (const auto& [name, tensor] : model_tensors(*EncoderDecoder(one_block)))
    found.emplace(name, tensor.sizes().vec());
  return found;
}

std::string in_first_block(const std::string& ours) {
  for (const std::string side : {"encoder.", "decoder."}) {
    if (ours.starts_with(side)) return side + "0" + ours.substr(ours.find('.', side.size()));
  }
  return ours;
}

// transformers reads `shared` where it ties all embeddings; else each side has its own, and the output layer too.
void take_embeddings(const EncoderDecoderOptions& o, HfMapping* mapping) {
  const std::vector<int64_t> shape = {o.vocabulary, o.attention.d_model};
  if (o.share_embeddings && o.tie_embeddings) {
    mapping->copy_tied({kShared, kSource, kTarget, kOutput}, shape, "token_embedding");
    return;
  }
  if (o.share_embeddings) {
    mapping->copy(kShared, shape, "token_embedding", mapping->tied_advice(kOutput));
  } else {
    const std::string advice = o.tie_embeddings ? "" : mapping->tied_advice(kOutput);
    mapping->copy(kSource, {o.source_vocabulary, o.attention.d_model}, "source_embedding", advice);
    mapping->copy_tied(
        o.tie_embeddings ? std::vector<std::string>{kTarget, kOutput} : std::vector<std::string>{kTarget}, shape,
        "token_embedding");
    mapping->leave_out(kShared);
  }
  if (!o.tie_embeddings) mapping->copy(kOutput, shape, "output_embedding", kUntiedAdvice);
}

void take_learned_positions(const EncoderDecoderOptions& o, int64_t unused, HfMapping* mapping) {
  for (const auto& [theirs, ours] : {std::pair("encoder.embed_positions.weight", "source_position_embedding"),
                                     {"decoder.embed_positions.weight", "position_embedding"}}) {
    const std::string full = mapping->take(theirs, {o.context + unused, o.attention.d_model});
    mapping->add(full, join_text("without the first ", unused, " rows"), ours,
                 [from = mapping->shared_directory(), full, unused] { return from->read(full).slice(0, unused); });
  }
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

// [1, V]. Zeros, as BART has, are no bias.
bool has_output_bias(const EncoderDecoderOptions& o, HfMapping* mapping) {
  if (!mapping->has(kOutputBias)) return false;
  const std::string full = mapping->take(kOutputBias, {1, o.vocabulary});
  if (mapping->directory().read(full).count_nonzero().item<int64_t>() == 0) {
    mapping->put_aside(full);
    return false;
  }
  mapping->add(full, "its only row", "output_bias",
               [from = mapping->shared_directory(), full] { return from->read(full).flatten(); });
  return true;
}

// Without ties, files of older programs have the one embedding that both sides read there; today's have one for each.
bool shares(const EncoderDecoderOptions& o, const HfMapping& mapping) {
  return o.share_embeddings ||
         (!o.tie_embeddings && mapping.has(kShared) && !mapping.has(kSource) && !mapping.has(kTarget));
}

}  // namespace

ForeignModel map_encoder_decoder(const std::shared_ptr<const HfDirectory>& directory,
                                 const EncoderDecoderFamily& family) {
  HfMapping mapping(directory, plain_name);
  EncoderDecoderOptions options = encoder_decoder_options(*directory, family);
  options.share_embeddings = shares(options, mapping);
  options.output_bias = has_output_bias(options, &mapping);
  options = resolve_read(*directory, options);
  ForeignModel foreign{.options = options, .notes = encoder_decoder_notes(*directory, options)};
  take_embeddings(options, &mapping);
  if (options.positions == PositionKind::kLearned) {
    take_learned_positions(options, family.unused_positions, &mapping);
  } else {
    leave_out_sinusoids(options, &mapping);
  }
  const auto of_first = shapes(options);
  take_named(
      tensor_names(options), [&](const std::string& ours) { return of_first.at(in_first_block(ours)); }, &mapping);
  for (const char* version : {"encoder.version", "decoder.version"}) mapping.leave_out(version);  // of fairseq
  mapping.finish(family.name, &foreign);
  return foreign;
}

}  // namespace headshare
