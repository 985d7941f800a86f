// A model is made of these options.
#pragma once

#include <string>
#include <vector>

#include "headshare/attention/options.h"
#include "headshare/models/embeddings/options.h"
#include "headshare/ops/norm.h"

namespace headshare {

enum class PositionKind { kLearned, kSinusoidal, kRotary, kAlibi, kNone };
enum class ActivationKind { kGeluTanh, kGeluErf, kRelu, kSilu };

// kPlain has `activation`; the gated kinds have activations of their own.
enum class FeedForwardKind { kPlain, kSwiglu, kGeglu, kGegluErf };
inline bool is_gated(FeedForwardKind kind) { return kind != FeedForwardKind::kPlain; }

// A block norms what its two sub-layers read, as GPT-2 does, or the sums that they were added to, as BERT does. The
// embedding of an encoder is normed already, so that ModernBERT's first attention reads it as it is.
enum class NormPlacement { kBefore, kAfter, kBeforeExceptFirst };

// Decoders and encoders have these options in common.
struct TransformerOptions {
  int64_t vocabulary = 50257;  // V
  int64_t context = 256;       // longest T + cache
  int64_t layers = 4;
  std::optional<int64_t> layer_groups = {};  // runs of layers, equally long, that share their parameters; unset: none
  int64_t share_kv_layers = 1;  // N: of so many neighbouring layers the upper ones read what the lowest remembers
  std::optional<int64_t> embedding_width = {};  // W, factorised: ids become W numbers and a projection makes them E
  FeedForwardKind feed_forward = FeedForwardKind::kPlain;
  std::optional<int64_t> feed_forward_width = {};  // default default_feed_forward_width()
  NormPlacement norms = NormPlacement::kAfter;     // a decoder has no choice: its norms stand before
  PositionKind positions = PositionKind::kLearned;
  ActivationKind activation = ActivationKind::kGeluTanh;
  NormKind norm = NormKind::kLayer;
  double norm_epsilon = 1e-5;
  double dropout = 0;  // on the embeddings and both residual branches
  bool tie_embeddings = true;
  bool feed_forward_bias = true;
  double init_deviation = 0.02;
  AttentionOptions attention = {};  // holds E and H
  // The layers `global_first`, `global_first` + `global_every`, ... see all tokens where attention has a window. The
  // others may have a rotary base of their own, without scaling.
  std::optional<int64_t> global_every = {};  // default: all layers have the window
  int64_t global_first = 0;
  std::optional<double> local_rotary_base = {};
  std::vector<int64_t> layer_key_widths = {};  // R of each of own_layers(), where they differ; attention.key_width is
                                               // the largest
};

// Returns the number of layers with parameters of their own: `layers`, or as many as there are groups of layers that
// share theirs.
int64_t own_layers(const TransformerOptions& options);

// Returns the width of token, position and segment embeddings and of what an output layer reads: W where the embedding
// is factorised, else E.
int64_t embedding_width(const TransformerOptions& options);

// Returns the attention of one of own_layers() from `resolved` options. Their `attention` is that of a layer that makes
// its keys and values; a layer that reads another's (share_kv_layers) has MemoryUse::kBorrowed.
AttentionOptions layer_attention(const TransformerOptions& resolved, int64_t layer);

// A decoder has no other options.
using DecoderOptions = TransformerOptions;

// A user sets these options of an encoder besides.
struct EncoderParts {
  int64_t segments = 2;  // kinds of tokens, such as a pair's first and second text; 0: not told apart
  TokenEmbeddingOptions embedding = {};
};

// A fine-tuned encoder reads its answer from one of these.
enum class TaskHeadKind {
  kNone,
  kText,   // the first token of each row, through the pooler
  kWords,  // that token, and the means of two groups of tokens
  kToken,  // every token
};

struct TaskHeadOptions {
  TaskHeadKind kind = TaskHeadKind::kNone;
  int64_t outputs = 0;                   // C
  std::vector<std::string> labels = {};  // the name of each output, where these are classes
};

const EnumNames<TaskHeadKind>& task_head_names();

// The pooler's layer ends in tanh in BERT, in ReLU in DistilBERT.
enum class PoolerActivation { kTanh, kRelu };

// An encoder's default options are BERT's, except for dropout and sizes.
struct EncoderOptions : TransformerOptions, EncoderParts {
  EncoderOptions();

  bool pooler = false;  // has the layer through which classification reads the first token
  PoolerActivation pooler_activation = PoolerActivation::kTanh;
  bool masked_head = false;     // has the layer that predicts masked tokens
  bool three_way_head = false;  // has the layer that tells original, shuffled and random tokens apart
  TaskHeadOptions task_head = {};
};

// Makes the option for where norms stand, of kinds that have the choice.
Field norms_field(NormPlacement* target);

// Lists every option that a user sets, the attention's included, except `vocabulary`, which the tokenizer gives, and in
// a decoder the placement of norms.
Fields fields(DecoderOptions& options);
Fields fields(EncoderParts& parts);
Fields fields(EncoderOptions& options);  // both, and the placement of norms

// Lists those and the rest that a checkpoint's config.json holds.
Fields stored_fields(DecoderOptions& options);
Fields stored_fields(EncoderOptions& options);

// Fills in defaults, hands positions and start values down to the attention options and checks sizes. Throws Error.
DecoderOptions resolve(DecoderOptions options);
EncoderOptions resolve(EncoderOptions options);

class ModelKind;

// Returns the kind of model that options of this type make (models/model_kind.h). A type of options without a kind of
// its own does not link.
template <class Options>
const ModelKind& kind_of();
template <>
const ModelKind& kind_of<DecoderOptions>();
template <>
const ModelKind& kind_of<EncoderOptions>();

// An encoder learns one of these tasks from text.
enum class EncoderTask { kMasked, kThreeWay };

// Returns the resolved options of an encoder with the head for a task.
EncoderOptions encoder_with_head(const TransformerOptions& common, const EncoderParts& parts, EncoderTask task);

}  // namespace headshare
