#include "headshare/models/blocks/options.h"

#include <algorithm>
#include <cmath>

#include "headshare/attention/scheme_record.h"
#include "headshare/attention/schemes/mla.h"
#include "headshare/base/error.h"
#include "headshare/models/blocks/feed_forward.h"
#include "headshare/text/hash/hash_tokenizer.h"

namespace headshare {
namespace {

const EnumNames<PositionKind>& position_names() {
  static const EnumNames<PositionKind> names = {{PositionKind::kLearned, "learned"},
                                                {PositionKind::kSinusoidal, "sinusoidal"},
                                                {PositionKind::kRotary, "rotary"},
                                                {PositionKind::kAlibi, "alibi"},
                                                {PositionKind::kNone, "none"}};
  return names;
}

const EnumNames<ActivationKind>& activation_names() {
  static const EnumNames<ActivationKind> names = {{ActivationKind::kGeluTanh, "gelu_tanh"},
                                                  {ActivationKind::kGeluErf, "gelu_erf"},
                                                  {ActivationKind::kRelu, "relu"},
                                                  {ActivationKind::kSilu, "silu"}};
  return names;
}

const EnumNames<FeedForwardKind>& feed_forward_names() {
  static const EnumNames<FeedForwardKind> names = {{FeedForwardKind::kPlain, "plain"},
                                                   {FeedForwardKind::kSwiglu, "swiglu"},
                                                   {FeedForwardKind::kGeglu, "geglu"},
                                                   {FeedForwardKind::kGegluErf, "geglu_erf"}};
  return names;
}

const EnumNames<NormPlacement>& norm_names() {
  static const EnumNames<NormPlacement> names = {{NormPlacement::kBefore, "pre"},
                                                 {NormPlacement::kAfter, "post"},
                                                 {NormPlacement::kBeforeExceptFirst, "pre_except_first"}};
  return names;
}

const EnumNames<PoolerActivation>& pooler_activation_names() {
  static const EnumNames<PoolerActivation> names = {{PoolerActivation::kTanh, "tanh"},
                                                    {PoolerActivation::kRelu, "relu"}};
  return names;
}

Field vocabulary_field(TransformerOptions& o) {
  return field("vocabulary", &o.vocabulary, "tokens the model knows",
               {.min = 1, .max = 1 << 30, .aliases = {"vocab-size"}});
}

// Throws Error unless the option `name` has a number for each layer.
void check_one_for_each(const std::string& name, const std::vector<int64_t>& widths, const TransformerOptions& o) {
  HS_CHECK(static_cast<int64_t>(widths.size()) == own_layers(o), name, " has ", widths.size(), " numbers for ",
           own_layers(o), o.layer_groups ? " groups of layers that share their parameters" : " layers",
           "; give one for each");
}

// Checks the key widths of the layers and takes the widest for estimates of memory. They are dropped for schemes that
// do not have them, as every option of one scheme alone.
void resolve_layer_widths(TransformerOptions& o) {
  if (!scheme_record(o.attention.scheme).shares_key_width) o.layer_key_widths.clear();
  if (o.layer_key_widths.empty()) return;
  check_one_for_each("layer-key-widths", o.layer_key_widths, o);
  for (const int64_t width : o.layer_key_widths) {
    o.attention.key_width = width;
    resolve(o.attention);
  }
  o.attention.key_width = *std::max_element(o.layer_key_widths.begin(), o.layer_key_widths.end());
}

// The same of the latent widths, whose largest the scheme itself takes.
void resolve_layer_latents(TransformerOptions& o) {
  std::vector<int64_t>& widths = o.attention.own.get<MlaOptions>().layer_kv_latents;
  if (o.attention.scheme != "mla") widths.clear();
  if (!widths.empty()) check_one_for_each("layer-kv-latent-widths", widths, o);
}

void resolve_layer_groups(TransformerOptions& o) {
  if (!o.layer_groups) return;
  HS_CHECK(o.layers % *o.layer_groups == 0, "layer-groups must divide layers, so that equally many share: ", o.layers,
           " / ", *o.layer_groups, "; choose --layer-groups among the divisors of ", o.layers);
  if (*o.layer_groups == o.layers) o.layer_groups.reset();
}

void resolve_windows(TransformerOptions& o) {
  if (!o.attention.window) o.global_every.reset();
  if (!o.global_every) o.global_first = 0;
  if (!o.attention.window || o.positions != PositionKind::kRotary) o.local_rotary_base.reset();
  if (!o.global_every) return;
  HS_CHECK(*o.global_every >= 2, "global-every ", *o.global_every,
           " leaves no layer with --local-window; leave the window out, or choose 2 or more");
  HS_CHECK(o.global_first >= 0 && o.global_first < *o.global_every, "global-first must be below global-every, ",
           *o.global_every, ", and not ", o.global_first);
  HS_CHECK(o.global_first < o.layers, "global-first ", o.global_first, " is beyond the ", o.layers,
           " layers, so that no layer sees all tokens; choose a smaller one, or leave --global-every out");
  HS_CHECK(!o.layer_groups,
           "layers that share their parameters (--layer-groups) have the same window; leave --global-every out");
}

// Layers can read the same keys and values if they compare in the same widths and turn keys alike. Windows may differ,
// because each layer looks through its own.
void resolve_shared_memory(TransformerOptions& o) {
  const int64_t N = o.share_kv_layers;
  o.attention.memory = N == 1 ? MemoryUse::kOwn : MemoryUse::kLent;
  if (N == 1) return;
  HS_CHECK(N >= 1 && o.layers % N == 0,
           "share-kv-layers must divide layers, so that equally many share keys and values: ", o.layers, " layers, ", N,
           " that share; set --share-kv-layers to a divisor of ", o.layers);
  HS_CHECK(!o.layer_groups, "layer-groups ", o.layer_groups.value_or(0),
           " makes layers share all their parameters, and share-kv-layers ", N,
           " the keys and values of layers with parameters of their own; leave one of the two out");
  HS_CHECK(!o.global_every || !o.local_rotary_base, "with --local-rotary-base ", o.local_rotary_base.value_or(0),
           " layers with and without a window turn keys differently, and ", N,
           " neighbours read the same keys (--share-kv-layers); leave one of the two out");
  for (const auto& [name, widths] : {std::pair("layer-key-widths", &o.layer_key_widths),
                                     {"layer-kv-latent-widths", &o.attention.own.get<MlaOptions>().layer_kv_latents}}) {
    for (size_t i = 0; i < widths->size(); ++i) {
      const size_t lowest = i - i % static_cast<size_t>(N);
      HS_CHECK((*widths)[i] == (*widths)[lowest], name, " gives layers ", lowest + 1, " and ", i + 1, " the widths ",
               (*widths)[lowest], " and ", (*widths)[i], ", and both read the same keys and values (--share-kv-layers ",
               N, "); give layers that share one width");
    }
  }
}

// Resolves options that decoders and encoders have in common; the weights whose output is added to the residual stream
// start with `output_deviation`.
void resolve_shared(TransformerOptions& o, double output_deviation) {
  o.attention.rotary = o.positions == PositionKind::kRotary;
  o.attention.alibi = o.positions == PositionKind::kAlibi;
  o.attention.init_deviation = o.init_deviation;
  o.attention.output_deviation = output_deviation;
  resolve_layer_groups(o);
  resolve_layer_widths(o);
  resolve_layer_latents(o);
  resolve_windows(o);
  resolve_shared_memory(o);
  o.attention = resolve(o.attention);
  if (!o.feed_forward_width) o.feed_forward_width = default_feed_forward_width(o.feed_forward, o.attention.d_model);
  HS_CHECK(o.positions != PositionKind::kSinusoidal || embedding_width(o) % 2 == 0,
           "sinusoidal positions need an even ", o.embedding_width ? "embedding-width" : "d-model", ", not ",
           embedding_width(o));
}

}  // namespace

const EnumNames<TaskHeadKind>& task_head_names() {
  static const EnumNames<TaskHeadKind> names = {{TaskHeadKind::kNone, "none"},
                                                {TaskHeadKind::kText, "text"},
                                                {TaskHeadKind::kWords, "words"},
                                                {TaskHeadKind::kToken, "token"}};
  return names;
}

int64_t own_layers(const TransformerOptions& o) { return o.layer_groups.value_or(o.layers); }

int64_t embedding_width(const TransformerOptions& o) { return o.embedding_width.value_or(o.attention.d_model); }

AttentionOptions layer_attention(const TransformerOptions& o, int64_t layer) {
  AttentionOptions attention = o.attention;
  if (layer % o.share_kv_layers != 0) attention.memory = MemoryUse::kBorrowed;
  if (!o.layer_key_widths.empty()) attention.key_width = o.layer_key_widths.at(static_cast<size_t>(layer));
  MlaOptions& mla = attention.own.get<MlaOptions>();
  if (!mla.layer_kv_latents.empty()) {
    mla.kv_latent = mla.layer_kv_latents.at(static_cast<size_t>(layer));
    mla.layer_kv_latents.clear();
  }
  if (o.global_every && layer % *o.global_every == o.global_first) {
    attention.window.reset();
  } else if (o.local_rotary_base) {
    attention.rotary_base = *o.local_rotary_base;
    attention.rotary_scaling = {};
  }
  return attention;
}

EncoderOptions::EncoderOptions() {
  context = 128;
  activation = ActivationKind::kGeluErf;
  norm_epsilon = 1e-12;
  attention.projection_bias = true;
}

Field norms_field(NormPlacement* target) {
  return field(
      "norms", target,
      "norms of blocks: after each sum (BERT, the first Transformer), or before each part (what --task mlm "
      "begins with); pre_except_first: the first layer's attention reads the normed embedding itself (ModernBERT)",
      norm_names(), {.aliases = {"norm-placement"}});
}

namespace {

Fields window_fields(TransformerOptions& o) {
  return {field("global-every", &o.global_every,
                "with --local-window: every N-th layer sees all tokens; auto: all layers have the window",
                {.min = 2, .max = 10000, .aliases = {"global-attn-every-n-layers"}, .since = 12}),
          field("global-first", &o.global_first, "index of the first layer that sees all tokens, from 0",
                {.min = 0, .max = 9999, .since = 12}),
          field("local-rotary-base", &o.local_rotary_base,
                "rotary base of the layers with --local-window, which --rotary-scaling leaves alone then; auto: "
                "--rotary-base",
                {.min = 1, .aliases = {"local-rope-theta"}, .since = 12})};
}

}  // namespace

Fields fields(DecoderOptions& o) {
  Fields list = {
      scheme_field(&o.attention.scheme, "how attention heads share projections"),
      field("layers", &o.layers, "transformer blocks",
            {.min = 1, .max = 10000, .aliases = {"num-hidden-layers", "n-layer", "num-layers"}}),
      field("layer-groups", &o.layer_groups,
            "groups of layers one after another that share one layer's parameters; 1: all share (ALBERT); auto: none",
            {.min = 1, .max = 10000, .aliases = {"num-hidden-groups"}, .since = 6}),
      field("share-kv-layers", &o.share_kv_layers,
            "so many layers one after another read the keys and values of the lowest of them, and keep one cache (CLA)",
            {.min = 1, .max = 10000, .since = 16}),
      field("d-model", &o.attention.d_model, "model width",
            {.min = 1, .max = 1 << 20, .aliases = {"hidden-size", "n-embd", "width"}}),
      field("heads", &o.attention.heads, "attention heads",
            {.min = 1, .max = 1 << 16, .aliases = {"num-attention-heads", "n-head", "num-heads"}}),
      field("context", &o.context, "longest sequence in tokens",
            {.min = 1, .max = 1 << 24, .aliases = {"block-size", "n-positions", "max-position-embeddings"}}),
      field(
          "feed-forward", &o.feed_forward,
          "what follows attention in a block; swiglu, geglu and geglu_erf (with the exact gelu) multiply it by a gate "
          "(three matrices)",
          feed_forward_names(), {.aliases = {"mlp"}, .since = 4}),
      field(
          "feed-forward-width", &o.feed_forward_width,
          "width of the feed-forward part; auto: 4 x d-model, gated about 8/3 x d-model, which has as many parameters",
          {.min = 1, .max = 1 << 24, .aliases = {"intermediate-size", "n-inner"}}),
      field("positions", &o.positions, "how positions enter", position_names()),
      field("activation", &o.activation, "of a plain feed-forward part", activation_names(),
            {.aliases = {"activation-function", "hidden-act"}}),
      field("norm", &o.norm, "layer: mean 0 and variance 1 with weight and bias; rms: mean square 1 with a weight",
            norm_kind_names(), {.aliases = {"norm-type", "normalization"}, .since = 4}),
      field("norm-epsilon", &o.norm_epsilon, "added to the variance or the mean square in norms",
            {.min = 0, .max = 1, .aliases = {"layer-norm-epsilon", "layer-norm-eps"}}),
      field("dropout", &o.dropout, "on the embeddings and the residual branches",
            {.min = 0, .max = 0.99, .aliases = {"hidden-dropout-prob", "resid-pdrop"}}),
      field("embedding-width", &o.embedding_width,
            "factorised embeddings (ALBERT): of this width, with a projection to d-model; auto: d-model, without one",
            {.min = 1, .max = 1 << 20, .aliases = {"embedding-size", "word-embed-proj-dim"}, .since = 6}),
      field("tie-embeddings", &o.tie_embeddings, "the output layer is the token embedding",
            {.aliases = {"tie-word-embeddings"}}),
      field("feed-forward-bias", &o.feed_forward_bias, "biases in the feed-forward part"),
      field("init-deviation", &o.init_deviation, "weights start from N(0, this squared)",
            {.min = 0, .max = 10, .aliases = {"initializer-range"}}),
  };
  append(&list, rotary_fields(o.attention));
  append(&list, fields(o.attention));
  append(&list, window_fields(o));
  list.push_back(field("layer-key-widths", &o.layer_key_widths,
                       "key width of each layer of collaborative attention (of each --layer-groups), where they "
                       "differ; empty: --key-width",
                       {.min = 1, .max = 1 << 20, .since = 5}));
  return list;
}

Fields fields(EncoderParts& o) {
  Fields list = {
      field("segments", &o.segments, "kinds of tokens that have an embedding, as in pairs of texts; 0: none",
            {.min = 0, .max = 1 << 20, .aliases = {"type-vocab-size"}}),
  };
  append(&list, fields(o.embedding));
  return list;
}

Fields fields(EncoderOptions& o) {
  Fields list = fields(static_cast<TransformerOptions&>(o));
  list.push_back(norms_field(&o.norms));
  append(&list, fields(static_cast<EncoderParts&>(o)));
  return list;
}

Fields stored_fields(DecoderOptions& o) {
  Fields list = {vocabulary_field(o)};
  append(&list, fields(o));
  return list;
}

Fields stored_fields(EncoderOptions& o) {
  Fields list = {vocabulary_field(o)};
  append(&list, fields(o));
  list.push_back(field("pooler", &o.pooler, "has the layer through which classification reads the first token"));
  list.push_back(field("pooler-activation", &o.pooler_activation, "what follows that layer", pooler_activation_names(),
                       {.since = 5}));
  list.push_back(field("masked-head", &o.masked_head, "has the layer that predicts masked tokens"));
  list.push_back(field("three-way-head", &o.three_way_head,
                       "has the layer that tells original, shuffled and random tokens apart", {.since = 7}));
  return list;
}

DecoderOptions resolve(DecoderOptions o) {
  // Weights whose output is added to the residual stream start smaller, by the number of additions, as in GPT-2.
  resolve_shared(o, o.init_deviation / std::sqrt(2.0 * static_cast<double>(o.layers)));
  return o;
}

EncoderOptions resolve(EncoderOptions o) {
  resolve_shared(o, o.init_deviation);
  HS_CHECK(o.norms != NormPlacement::kBeforeExceptFirst || !o.layer_groups,
           "layers that share their parameters (--layer-groups) have the same norms; choose --norms pre or post");
  if (is_hashed(o.embedding)) {
    check_token_embedding(o.embedding, embedding_width(o));
    HS_CHECK(!o.masked_head,
             "a masked language model scores every token of a vocabulary, and hashed embeddings have none; train with "
             "--task three-way, or choose --token-embedding table");
    o.vocabulary = HashTokenizer::kSpecials;
  }
  const TaskHeadOptions& head = o.task_head;
  const auto labels = static_cast<int64_t>(head.labels.size());
  HS_CHECK(head.kind == TaskHeadKind::kNone || head.outputs >= 1, "a task head needs outputs, not ", head.outputs);
  HS_CHECK(labels == 0 || labels == head.outputs, "a task head with ", head.outputs, " outputs has ", labels,
           " labels");
  return o;
}

EncoderOptions encoder_with_head(const TransformerOptions& common, const EncoderParts& parts, EncoderTask task) {
  EncoderOptions options;
  static_cast<TransformerOptions&>(options) = common;
  static_cast<EncoderParts&>(options) = parts;
  options.masked_head = task == EncoderTask::kMasked;
  options.three_way_head = task == EncoderTask::kThreeWay;
  return resolve(options);
}

}  // namespace headshare
