// What a model is made of.
#pragma once

#include <string>
#include <vector>

#include "headshare/attention/options.h"
#include "headshare/models/embeddings/options.h"
#include "headshare/ops/norm.h"

namespace headshare {

enum class PositionKind { kLearned, kSinusoidal, kRotary, kAlibi, kNone };
enum class ActivationKind { kGeluTanh, kGeluErf, kRelu, kSilu };

// kPlain has `activation`; the gated ones bring their own.
enum class FeedForwardKind { kPlain, kSwiglu, kGeglu };
inline bool is_gated(FeedForwardKind kind) { return kind != FeedForwardKind::kPlain; }

// Whether a block norms what its two parts read, as GPT-2 does, or what they were added to, as BERT does.
enum class NormPlacement { kBefore, kAfter };

// What decoders and encoders have in common.
struct TransformerOptions {
  int64_t vocabulary = 50257;  // V
  int64_t context = 256;       // longest T + cache
  int64_t layers = 4;
  std::optional<int64_t> layer_groups = {};  // runs of layers, equally long, that share their parameters; unset: none
  std::optional<int64_t> embedding_width = {};  // W, factorised: ids become W numbers and a projection makes them E
  FeedForwardKind feed_forward = FeedForwardKind::kPlain;
  std::optional<int64_t> feed_forward_width = {};  // default default_feed_forward_width()
  NormPlacement norms = NormPlacement::kBefore;    // a decoder has no choice
  PositionKind positions = PositionKind::kLearned;
  ActivationKind activation = ActivationKind::kGeluTanh;
  NormKind norm = NormKind::kLayer;
  double norm_epsilon = 1e-5;
  double dropout = 0;  // on the embeddings and both residual branches
  bool tie_embeddings = true;
  bool feed_forward_bias = true;
  double init_deviation = 0.02;
  AttentionOptions attention = {};             // holds E and H
  std::vector<int64_t> layer_key_widths = {};  // R of each of own_layers(), where they differ; attention.key_width is
                                               // the largest
};

// Layers with parameters of their own: `layers`, or as many as there are groups of layers that share theirs.
int64_t own_layers(const TransformerOptions& options);

// The width of token, position and segment embeddings and of what an output layer scores: W where the embedding is
// factorised, else E.
int64_t embedding_width(const TransformerOptions& options);

// The attention of one of own_layers(); `resolved` options.
AttentionOptions layer_attention(const TransformerOptions& resolved, int64_t layer);

// A decoder has nothing else.
using DecoderOptions = TransformerOptions;

// What a user sets of an encoder besides.
struct EncoderParts {
  int64_t segments = 2;  // kinds of tokens, such as a pair's first and second text; 0: not told apart
  TokenEmbeddingOptions embedding = {};
};

// Where a fine-tuned encoder reads its answer.
enum class TaskHeadKind {
  kNone,
  kText,   // the first token of each row, through the pooler
  kWords,  // the same, and the means of two groups of tokens
  kToken,  // every token
};

struct TaskHeadOptions {
  TaskHeadKind kind = TaskHeadKind::kNone;
  int64_t outputs = 0;                   // C
  std::vector<std::string> labels = {};  // the name of each output, where these are classes
};

const EnumNames<TaskHeadKind>& task_head_names();

// What follows the pooler's layer: tanh in BERT, ReLU in DistilBERT.
enum class PoolerActivation { kTanh, kRelu };

// An encoder; as it is made, BERT's, but for dropout and sizes.
struct EncoderOptions : TransformerOptions, EncoderParts {
  EncoderOptions();

  bool pooler = false;  // has the layer through which classification reads the first token
  PoolerActivation pooler_activation = PoolerActivation::kTanh;
  bool masked_head = false;     // has the layer that predicts masked tokens
  bool three_way_head = false;  // has the layer that tells original, shuffled and random tokens apart
  TaskHeadOptions task_head = {};
};

// Where a model's norms stand, where that is a choice.
Field norms_field(NormPlacement* target);

// Every option a user sets, the attention's included, but for `vocabulary`, which the tokenizer gives, and of a decoder
// for the placement of norms.
Fields fields(DecoderOptions& options);
Fields fields(EncoderParts& parts);
Fields fields(EncoderOptions& options);  // both, and the placement of norms

// The same and the rest: what a checkpoint's config.json holds.
Fields stored_fields(DecoderOptions& options);
Fields stored_fields(EncoderOptions& options);

// Fills in defaults, hands positions and start values down to the attention options, checks sizes.
DecoderOptions resolve(DecoderOptions options);
EncoderOptions resolve(EncoderOptions options);

class ModelKind;

// The kind of model that options of this type make (models/model_kind.h). A type of options without a kind of its own
// does not link.
template <class Options>
const ModelKind& kind_of();
template <>
const ModelKind& kind_of<DecoderOptions>();
template <>
const ModelKind& kind_of<EncoderOptions>();

// What an encoder learns from text.
enum class EncoderTask { kMasked, kThreeWay };

// An encoder of these with the head that learns this, resolved.
EncoderOptions encoder_with_head(const TransformerOptions& common, const EncoderParts& parts, EncoderTask task);

}  // namespace headshare
