#include "headshare/models/size.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/base/proc.h"
#include "headshare/models/decoder.h"
#include "headshare/models/encoder.h"
#include "headshare/ops/cross_entropy.h"

namespace headshare {
namespace {

constexpr double kFloatBytes = 4;

constexpr double kHalfBytes = 2;  // of a bfloat16

// Bytes kept for the backward pass for each token of one block: two residual sums and the inputs of two norms, always
// float32; their outputs, four projections and the feed-forward part, in bfloat16 before its activation and after. In
// bfloat16 each of the three projections that read one norm's output converts and keeps its own copy; where products
// widen it is a little less.
double kept_per_token(const TransformerOptions& o, bool bf16) {
  const auto E = static_cast<double>(o.attention.d_model);
  const auto F = static_cast<double>(*o.feed_forward_width);
  const double inside = static_cast<double>(4 * o.attention.heads * *o.attention.head_width) + (bf16 ? 2 : 1) * F;
  return kFloatBytes * 4 * E + (bf16 ? kHalfBytes * (4 * E + inside) : kFloatBytes * (2 * E + inside));
}

// Values: scores of a chunk of tokens and their log-softmax, hidden states with their gradient, and for tied
// embeddings the gradient of the one use beside the other's.
double output_layer(const TransformerOptions& o, const TrainingShape& shape) {
  const auto V = static_cast<double>(o.vocabulary);
  const auto E = static_cast<double>(o.attention.d_model);
  const auto tokens = static_cast<int64_t>(std::ceil(static_cast<double>(shape.batch * shape.length) * shape.scored));
  const auto chunk = static_cast<double>(cross_entropy_chunk(tokens, o.vocabulary));
  return 2 * chunk * V + 2 * static_cast<double>(tokens) * E + (o.tie_embeddings ? V * E : 0);
}

double read_number(const char* path) {
  std::ifstream in(path);
  double value = 0;
  return in >> value ? value : std::numeric_limits<double>::infinity();
}

// Counts a model with one block and multiplies: blocks are alike.
template <class Model, class Options>
ModelSize count(Options one_block, int64_t layers) {
  const DeclareOn meta(at::kMeta);
  one_block.layers = 1;
  const Model model(one_block);
  const AttentionCost cost = model->scheme().cost();
  int64_t block = 0;
  int64_t rest = 0;
  for (const Declared& one : declared_parameters(*model)) {
    (one.name.starts_with("blocks.") ? block : rest) += one.tensor.numel();
  }
  // The cache has at most as many elements as the projections that fill it.
  HS_CHECK(block <= (std::numeric_limits<int64_t>::max() / static_cast<int64_t>(kFloatBytes) - rest) / layers,
           "a model of ", layers, " layers with ", block,
           " parameters each cannot be counted in 64 bits; choose smaller sizes");
  return {.attention_parameters = layers * cost.parameters,
          .attention_parameters_effective = layers * cost.effective,
          .total_parameters = rest + layers * block,
          .cache_elements_per_token = cost.cache_elements,
          .cache_bytes_per_token = layers * cost.cache_elements * static_cast<int64_t>(kFloatBytes)};
}

double stored_bytes(const TransformerOptions& o, int64_t parameters) {
  const bool table = o.positions == PositionKind::kSinusoidal;
  const double sinusoids = table ? static_cast<double>(o.context) * static_cast<double>(o.attention.d_model) : 0;
  return kFloatBytes * (static_cast<double>(parameters) + sinusoids);
}

double step_bytes(const TransformerOptions& o, int64_t parameters, const TrainingShape& shape) {
  const double tokens = static_cast<double>(shape.batch) * static_cast<double>(shape.length);
  const auto layers = static_cast<double>(o.layers);
  const double block = tokens * kept_per_token(o, shape.bf16);  // attention keeps no scores (docs/design/014)
  const double output = kFloatBytes * output_layer(o, shape);
  const double copies = 4 + static_cast<double>(shape.moving_averages);
  double bytes = kFloatBytes * copies * static_cast<double>(parameters);
  if (shape.bf16) bytes += kHalfBytes * static_cast<double>(parameters);
  // A recomputed block has its values only after the output layer has given up its own.
  return bytes + (shape.recompute ? layers * kFloatBytes * tokens * static_cast<double>(o.attention.d_model) +
                                        std::max(block, output)
                                  : layers * block + output);
}

}  // namespace

ModelSize measure(const DecoderOptions& o) { return count<Decoder>(o, o.layers); }

ModelSize measure(const EncoderOptions& o) {
  ModelSize size = count<Encoder>(o, o.layers);
  size.cache_elements_per_token = size.cache_bytes_per_token = 0;
  return size;
}

double parameter_bytes(const DecoderOptions& o) { return stored_bytes(o, measure(o).total_parameters); }
double parameter_bytes(const EncoderOptions& o) { return stored_bytes(o, measure(o).total_parameters); }

double training_bytes(const DecoderOptions& o, const TrainingShape& shape) {
  return step_bytes(o, measure(o).total_parameters, shape);
}

double training_bytes(const EncoderOptions& o, const TrainingShape& shape) {
  return step_bytes(o, measure(o).total_parameters, shape);
}

double decoding_bytes(const DecoderOptions& o, int64_t batch, int64_t length) {
  return parameter_bytes(o) + static_cast<double>(measure(o).cache_bytes_per_token) * static_cast<double>(batch) *
                                  static_cast<double>(length);
}

double available_memory_bytes() {
  const double limit = read_number("/sys/fs/cgroup/memory.max");  // "max" reads as no number
  const double used = read_number("/sys/fs/cgroup/memory.current");
  const double in_group = std::isfinite(limit) && std::isfinite(used) ? std::max(0.0, limit - used) : limit;
  const std::optional<int64_t> system = proc_bytes("/proc/meminfo", "MemAvailable");
  return system ? std::min(static_cast<double>(*system), in_group) : in_group;
}

void check_memory(double needed, const std::string& what, const std::string& way_out) {
  const double available = available_memory_bytes();
  HS_CHECK(needed <= available, what, " needs about ", format_bytes(needed), " and ", format_bytes(available),
           " are available; ", way_out);
}

}  // namespace headshare
