#include "headshare/models/size.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "headshare/attention/scheme.h"
#include "headshare/models/blocks/feed_forward.h"
#include "headshare/models/model_kind.h"
#include "headshare/ops/cross_entropy.h"

namespace headshare {
namespace {

constexpr double kFloatBytes = 4;

constexpr double kHalfBytes = 2;  // bytes of a bfloat16

double tokens_of(const TrainingShape& shape) {
  return static_cast<double>(shape.batch) * static_cast<double>(shape.length);
}

// AttentionWidths count the values of one token in attention.
struct AttentionWidths {
  double usual = 0;                                 // H D
  double query = 0, key = 0, value = 0, heads = 0;  // widths of the problem that the scheme poses, and of its solution
  double memory = 0;                                // what the scheme remembers
  double made = 0;  // of key and value: what is no part of the memory, so that every layer that reads it makes its own
};

// Asks the scheme itself, without memory, in the form that training uses. Heads may be far wider than E / H: as wide as
// the key width in `collaborative`, as the model in `el_lossless`.
AttentionWidths attention_widths(const AttentionOptions& options, int64_t length) {
  const DeclareOn meta(at::kMeta);
  const at::NoGradGuard no_grad;
  const std::shared_ptr<Scheme> scheme = make_scheme(options);
  const Tensor x = at::empty({1, 1, options.d_model}, at::TensorOptions().device(at::kMeta));
  const Form form = scheme->form_for(length, length);
  const Memory memory = scheme->remember(x, 0);
  const HeadProblem problem = scheme->posed(scheme->project_queries(x, 0), memory, form).problem;
  const auto width = [](const Tensor& values) { return static_cast<double>(values.numel()); };
  AttentionWidths widths{.usual = static_cast<double>(options.heads * *options.head_width),
                         .query = width(problem.query),
                         .key = width(problem.key),
                         .value = width(problem.value),
                         .heads = static_cast<double>(problem.heads * problem.value.size(3))};
  for (const Tensor& part : memory) widths.memory += width(part);
  for (const Tensor* read : {&problem.key, &problem.value}) {
    const auto holds = [&](const Tensor& part) { return part.is_alias_of(*read); };
    if (std::none_of(memory.begin(), memory.end(), holds)) widths.made += width(*read);
  }
  return widths;
}

// Returns the bytes kept for the backward pass for each token of one block: two residual sums, always float32, and
// where norms come after them what sub-layers read of their outputs (a norm before a sub-layer is made again); the
// input and output of attention (at least four projections, two where keys and values are another layer's) and the
// feed-forward sub-layer, in bfloat16 before its activation and after.
double kept_per_token(const TransformerOptions& o, const AttentionWidths& widths, MemoryUse memory, bool bf16) {
  const auto E = static_cast<double>(o.attention.d_model);
  const double read = o.norms == NormPlacement::kAfter ? 2 * E : 0;
  const double attention = memory == MemoryUse::kBorrowed
                               ? std::max(2 * widths.usual, widths.query + widths.made + widths.heads)
                               : std::max(4 * widths.usual, widths.query + widths.key + widths.value + widths.heads);
  const double inside = attention + feed_forward_values(o, bf16).kept;
  return kFloatBytes * 2 * E + (bf16 ? kHalfBytes : kFloatBytes) * (read + inside);
}

// Counts values: logits of a chunk of tokens and their log-softmax, hidden states with their gradient, where the
// embedding is factorised their projections too, and for tied embeddings the gradient of the one use beside the
// other's.
double output_layer(const TransformerOptions& o, const TrainingShape& shape) {
  const auto V = static_cast<double>(o.vocabulary);
  const auto W = static_cast<double>(embedding_width(o));
  const double read = static_cast<double>(o.attention.d_model) + (o.embedding_width ? W : 0);
  const auto tokens = static_cast<int64_t>(std::ceil(static_cast<double>(shape.batch * shape.length) * shape.scored));
  const auto chunk = static_cast<double>(cross_entropy_chunk(tokens, o.vocabulary));
  return 2 * chunk * V + 2 * static_cast<double>(tokens) * read + (o.tie_embeddings ? V * W : 0);
}

double stored_bytes(const TransformerOptions& o, int64_t parameters) {
  const bool table = o.positions == PositionKind::kSinusoidal;
  const double sinusoids = table ? static_cast<double>(o.context) * static_cast<double>(embedding_width(o)) : 0;
  return kFloatBytes * (static_cast<double>(parameters) + sinusoids);
}

// Returns the bytes of the activations of a training step.
double step_bytes(const TransformerOptions& o, const TrainingShape& shape) {
  const double tokens = tokens_of(shape);
  const auto share = static_cast<double>(o.share_kv_layers), groups = static_cast<double>(o.layers) / share;
  const AttentionWidths widths = attention_widths(o.attention, shape.length);
  const auto block = [&](MemoryUse memory) {  // attention keeps no scores (docs/design/014)
    return tokens * kept_per_token(o, widths, memory, shape.bf16);
  };
  const double group = block(MemoryUse::kLent) + (share - 1) * block(MemoryUse::kBorrowed);
  const double output = kFloatBytes * output_layer(o, shape);
  // If queries are wider than usual, their gradient and one product with it exceed all other temporary values.
  const double passing = kFloatBytes * tokens * 2 * std::max(0.0, widths.query - widths.usual);
  // Blocks that are recomputed get their values only after the output layer has freed its own.
  return shape.recompute ? groups * kFloatBytes * tokens * static_cast<double>(o.attention.d_model) +
                               std::max(group + passing, output)
                         : groups * group + std::max(output, passing);
}

// Returns the bytes of the larger of two: attention or the feed-forward sub-layer of one block, and the output layer.
// Besides there are hidden states: the block's input, its norm and the change that is added; the feed-forward sub-layer
// has those of attention too, and what the next layers read of a memory that they share.
double forward_bytes(const TransformerOptions& o, const TrainingShape& shape) {
  const double tokens = tokens_of(shape);
  const auto E = static_cast<double>(o.attention.d_model);
  const AttentionWidths w = attention_widths(o.attention, shape.length);
  const double attention = 3 * E + w.query + w.key + w.value + 2 * w.heads;  // heads twice: joined, or with an offset
  const double shared = o.share_kv_layers > 1 ? w.memory : 0;
  const double feed_forward = 5 * E + shared + feed_forward_values(o, /*bf16=*/false).passing;
  const double block = tokens * std::max(attention, feed_forward);
  const double scored = std::ceil(tokens * shape.scored);
  const auto chunk = static_cast<double>(cross_entropy_chunk(static_cast<int64_t>(scored), o.vocabulary));
  const double output = 2 * tokens * E + (shape.scored > 0 ? scored * static_cast<double>(embedding_width(o)) +
                                                                 chunk * static_cast<double>(o.vocabulary)
                                                           : 0);
  return kFloatBytes * std::max(block, output);
}

int64_t batch_to_evaluate(const TransformerOptions& o, const TrainingShape& shape) {
  constexpr int64_t kTokens = 4096;
  constexpr int64_t kMostLogits = 1 << 26;
  constexpr double kAlways = 1 << 28;  // bytes
  const int64_t logits = shape.length * (shape.scored > 0 ? o.vocabulary : 1);
  const int64_t wanted = std::max(shape.batch, kTokens / shape.length);
  TrainingShape evaluated = shape;
  evaluated.batch = std::clamp<int64_t>(kMostLogits / logits, 1, wanted);
  const double allowed = std::max(step_bytes(o, shape), kAlways);
  for (double needed = forward_bytes(o, evaluated); evaluated.batch > 1 && needed > allowed;
       needed = forward_bytes(o, evaluated)) {
    const auto fitting = static_cast<int64_t>(static_cast<double>(evaluated.batch) * allowed / needed);
    evaluated.batch = std::clamp<int64_t>(fitting, 1, evaluated.batch - 1);
  }
  return evaluated.batch;
}

double run_bytes(const TransformerOptions& o, int64_t parameters, const TrainingShape& shape) {
  const double copies = 4 + static_cast<double>(shape.moving_averages);
  double bytes = kFloatBytes * copies * static_cast<double>(parameters);
  if (shape.bf16) bytes += kHalfBytes * static_cast<double>(parameters);
  TrainingShape evaluated = shape;
  evaluated.batch = batch_to_evaluate(o, shape);
  return bytes + std::max(step_bytes(o, shape), forward_bytes(o, evaluated));
}

}  // namespace

ModelSize measure(const ModelOptions& o) {
  ModelSize size = o.kind().measure(o);
  if (!o.kind().keeps_cache()) {
    size.cache_elements_per_token = size.cache_bytes_per_token = size.source_cache_bytes_per_token = 0;
  }
  return size;
}

double parameter_bytes(const ModelOptions& o) { return stored_bytes(o.common(), measure(o).total_parameters); }

double training_bytes(const ModelOptions& o, const TrainingShape& shape) {
  return run_bytes(o.kind().as_one_stack(o), measure(o).total_parameters, shape) + o.kind().lookup_bytes(o, shape);
}

double evaluation_bytes(const ModelOptions& o, const TrainingShape& shape) {
  // The memory of looking up is free again before the first block.
  return std::max(forward_bytes(o.kind().as_one_stack(o), shape), 2 * o.kind().lookup_bytes(o, shape));
}

int64_t evaluation_batch(const ModelOptions& o, const TrainingShape& shape) {
  return batch_to_evaluate(o.kind().as_one_stack(o), shape);
}

double decoding_bytes(const ModelOptions& o, int64_t batch, int64_t length) {
  return parameter_bytes(o) + static_cast<double>(measure(o).cache_bytes_per_token) * static_cast<double>(batch) *
                                  static_cast<double>(length);
}

}  // namespace headshare
