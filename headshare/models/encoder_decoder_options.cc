#include "headshare/models/encoder_decoder_options.h"

#include <algorithm>
#include <cmath>

#include "headshare/attention/scheme_record.h"
#include "headshare/attention/schemes/mla.h"
#include "headshare/base/error.h"
#include "headshare/base/options/prefixed.h"

namespace headshare {
namespace {

constexpr const char* kAuto = "auto";

const EnumNames<SinusoidOrder>& sinusoid_names() {
  static const EnumNames<SinusoidOrder> names = {{SinusoidOrder::kInterleaved, "interleaved"},
                                                 {SinusoidOrder::kHalves, "halves"}};
  return names;
}

Field site_scheme(const std::string& name, std::string* target, const std::string& help) {
  std::vector<std::string> choices = {kAuto};
  for (const std::string& scheme : scheme_names()) choices.push_back(scheme);
  return field(name, target, help, choices, {});
}

// Returns the attention of a site that has this scheme, from the options of all sites.
AttentionOptions site_attention(AttentionOptions common, const std::string& scheme) {
  if (scheme != kAuto) common.scheme = scheme;
  return common;
}

AttentionSites sites_of(const EncoderDecoderOptions& o) {
  return {.encoder = site_attention(o.attention, o.encoder_scheme),
          .decoder = site_attention(o.attention, o.decoder_scheme),
          .cross = site_attention(o.attention, o.cross_scheme)};
}

// Returns the deviation of weights at the start. A matrix of E x E keeps the variance of its input with 1 / E (Glorot
// and Bengio, 2010). With the 0.02 of GPT-2 and BERT, narrow models hardly learn to look at the source
// (docs/design/039-translation.md).
double start_deviation(const EncoderDecoderOptions& o) {
  return o.scale_init ? 1 / std::sqrt(static_cast<double>(o.attention.d_model)) : o.init_deviation;
}

// Copies options that belong to the model and not to a site.
void take_common(const EncoderDecoderOptions& o, AttentionOptions* site) {
  HS_CHECK(site->own.get<MlaOptions>().layer_kv_latents.empty(),
           "an encoder-decoder has one latent width for all layers; use --kv-latent-width instead of "
           "--layer-kv-latent-widths");
  site->d_model = o.attention.d_model;
  site->heads = o.attention.heads;
  site->rotary = o.positions == PositionKind::kRotary;
  site->alibi = o.positions == PositionKind::kAlibi;
  site->memory = o.share_kv_layers == 1 ? MemoryUse::kOwn : MemoryUse::kLent;
  site->rotary_base = o.attention.rotary_base;
  site->rotary_scaling = o.attention.rotary_scaling;
  site->rotary_dimensions = o.attention.rotary_dimensions;
  site->init_deviation = site->output_deviation = start_deviation(o);
}

void resolve_site(const EncoderDecoderOptions& o, const char* name, AttentionOptions* site) {
  take_common(o, site);
  try {
    *site = resolve(*site);
  } catch (const Error& error) {
    throw Error(join_text(name, ": ", error.what()));
  }
}

// Removes positions, because a cross-attention reads two sequences whose positions have no order in common.
void take_positions_away(AttentionOptions* cross) {
  cross->rotary = cross->alibi = cross->key_offset = false;
  cross->window.reset();
  for (const auto& one : scheme_records()) {
    if (one->options.leave_rotary_out != nullptr) one->options.leave_rotary_out(cross);
  }
}

void resolve_sites(EncoderDecoderOptions* o) {
  if (!o->sites) o->sites = sites_of(*o);
  resolve_site(*o, "self-attention of the encoder", &o->sites->encoder);
  resolve_site(*o, "self-attention of the decoder", &o->sites->decoder);
  AttentionOptions& cross = o->sites->cross;
  take_common(*o, &cross);
  take_positions_away(&cross);
  cross.memory = MemoryUse::kOwn;
  cross = resolve(cross);
  o->encoder_scheme = o->sites->encoder.scheme;
  o->decoder_scheme = o->sites->decoder.scheme;
  o->cross_scheme = cross.scheme;
}

void refuse_what_it_has_not(const EncoderDecoderOptions& o) {
  HS_CHECK(!o.layer_groups, "an encoder-decoder has no layers that share parameters; leave --layer-groups out");
  HS_CHECK(!o.embedding_width, "an encoder-decoder has no factorised embeddings; leave --embedding-width out");
  HS_CHECK(o.norms != NormPlacement::kBeforeExceptFirst,
           "the sides of an encoder-decoder norm before each part or after it; choose --norms pre or post");
  HS_CHECK(o.layer_key_widths.empty(),
           "an encoder-decoder has one key width for all layers; use --key-width instead of --layer-key-widths");
}

Fields attention_fields(const std::string& site, AttentionOptions& options) {
  Fields list = {scheme_field(&options.scheme, "how its heads share projections")};
  append(&list, fields(options));
  return prefixed(site + "-", std::move(list));
}

Fields mark_fields(TargetMarks& marks) {
  return {field("start-id", &marks.start, "the token that stands before a target", {.min = 0}),
          field("end-id", &marks.end, "the token that ends a target", {.min = 0}),
          field("forced-first-id", &marks.forced_first, "the first token of every target; auto: any", {.min = 0}),
          field("forced-last-id", &marks.forced_last, "the token at the greatest length; auto: any", {.min = 0}),
          field("never-produced-id", &marks.never_produced, "a token that is never produced; auto: none", {.min = 0})};
}

void check_mark(const std::optional<int64_t>& id, const char* name, int64_t vocabulary) {
  HS_CHECK(!id || (*id >= 0 && *id < vocabulary), name, " ", *id, " is no token of a vocabulary of ", vocabulary);
}

TransformerOptions side(const EncoderDecoderOptions& o, const AttentionOptions& attention, int64_t layers) {
  TransformerOptions one = o;
  one.attention = attention;
  one.layers = layers;
  one.init_deviation = start_deviation(o);
  return one;
}

}  // namespace

Fields fields(EncoderDecoderParts& o) {
  return {
      site_scheme("encoder-scheme", &o.encoder_scheme, "scheme of the encoder's self-attention; auto: --scheme"),
      site_scheme("decoder-scheme", &o.decoder_scheme, "scheme of the decoder's self-attention; auto: --scheme"),
      site_scheme("cross-scheme", &o.cross_scheme, "scheme of the decoder's attention to the source; auto: --scheme"),
      field("decoder-layers", &o.decoder_layers, "blocks of the decoder; auto: as many as the encoder's, --layers",
            {.min = 1, .max = 10000}),
      field("scale-embeddings", &o.scale_embeddings, "token embeddings are multiplied by the root of d-model",
            {.aliases = {"scale-embedding"}}),
      field("share-embeddings", &o.share_embeddings,
            "source and target have one token embedding; needs one tokenizer for both",
            {.aliases = {"share-all-embeddings", "share-encoder-decoder-embeddings"}}),
      field("scale-init", &o.scale_init,
            "weights start from N(0, 1 / d-model), and not from --init-deviation, which is for wide models"),
      field("embedding-norm", &o.embedding_norm, "a norm over the embeddings of either side (BART)",
            {.aliases = {"normalize-embedding"}}),
      field("sinusoid-order", &o.sinusoid_order,
            "sines and cosines in turns, or all sines first (MarianMT); with --positions sinusoidal", sinusoid_names()),
  };
}

Fields fields(EncoderDecoderOptions& o) {
  Fields list = fields(static_cast<TransformerOptions&>(o));
  list.push_back(norms_field(&o.norms));
  append(&list, fields(static_cast<EncoderDecoderParts&>(o)));
  return list;
}

Fields stored_fields(EncoderDecoderOptions& o) {
  if (!o.sites) o.sites.emplace();
  Fields list = {field("vocabulary", &o.vocabulary, "tokens of the target", {.min = 1, .max = 1 << 30}),
                 field("source-vocabulary", &o.source_vocabulary, "tokens of the source; 0: those of the target",
                       {.min = 0, .max = 1 << 30})};
  for (Field& one : fields(o)) {
    if (!one.name.ends_with("-scheme")) list.push_back(std::move(one));  // the sites have schemes of their own
  }
  list.push_back(field("output-bias", &o.output_bias, "the output layer has a bias for each token"));
  append(&list, mark_fields(o.marks));
  append(&list, attention_fields("encoder", o.sites->encoder));
  append(&list, attention_fields("decoder", o.sites->decoder));
  append(&list, attention_fields("cross", o.sites->cross));
  return list;
}

std::vector<std::string> site_schemes(const EncoderDecoderParts& parts, const std::string& scheme) {
  std::vector<std::string> schemes = {parts.encoder_scheme, parts.decoder_scheme, parts.cross_scheme};
  std::replace(schemes.begin(), schemes.end(), std::string(kAuto), scheme);
  return schemes;
}

namespace {

// Resolves what both sides have in common, with the model's scheme as their attention. Where neither side has that
// scheme, it is the cross-attention's at most. No layer shares what a cross-attention remembers, so the scheme need not
// be one whose memory can be shared, and the encoder's says what its layers can share.
void resolve_common(EncoderDecoderOptions* o) {
  TransformerOptions& common = *o;
  const std::string& scheme = o->attention.scheme;
  const bool of_a_side = scheme == o->sites->encoder.scheme || scheme == o->sites->decoder.scheme;
  const int64_t sharing = o->share_kv_layers;
  if (!of_a_side) {
    resolve(encoder_side(*o));
    o->share_kv_layers = 1;
  }
  common = resolve(common);
  o->share_kv_layers = sharing;
}

}  // namespace

EncoderDecoderOptions resolve(EncoderDecoderOptions o) {
  refuse_what_it_has_not(o);
  resolve_sites(&o);
  resolve_common(&o);
  if (!o.decoder_layers) o.decoder_layers = o.layers;
  HS_CHECK(*o.decoder_layers % o.share_kv_layers == 0,
           "share-kv-layers must divide decoder-layers, too: ", *o.decoder_layers, " layers, ", o.share_kv_layers,
           " that share; set --share-kv-layers to a divisor of both");
  HS_CHECK(!o.share_embeddings || o.source_vocabulary == 0 || o.source_vocabulary == o.vocabulary,
           "source and target share one token embedding, and their vocabularies have ", o.source_vocabulary, " and ",
           o.vocabulary, " tokens; use one tokenizer for both, or --share-embeddings=false");
  if (o.source_vocabulary == 0 || o.share_embeddings) o.source_vocabulary = o.vocabulary;
  check_mark(o.marks.start, "start-id", o.vocabulary);
  check_mark(o.marks.end, "end-id", o.vocabulary);
  check_mark(o.marks.forced_first, "forced-first-id", o.vocabulary);
  check_mark(o.marks.forced_last, "forced-last-id", o.vocabulary);
  check_mark(o.marks.never_produced, "never-produced-id", o.vocabulary);
  return o;
}

TransformerOptions encoder_side(const EncoderDecoderOptions& o) { return side(o, o.sites->encoder, o.layers); }

TransformerOptions decoder_side(const EncoderDecoderOptions& o) { return side(o, o.sites->decoder, *o.decoder_layers); }

}  // namespace headshare
