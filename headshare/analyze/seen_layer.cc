#include "headshare/analyze/seen_layer.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/convert/collaborative/model_change.h"

namespace headshare {
namespace {

constexpr int64_t kLongestRow = 1024;

}  // namespace

Tensor first_tokens(const Tensor& sample, int64_t tokens) {
  const int64_t T = std::min(sample.size(1), kLongestRow);
  const int64_t rows = std::clamp<int64_t>(tokens / T, 1, sample.size(0));
  return sample.slice(0, 0, rows).slice(1, 0, T);
}

void check_seen_memory(int64_t tokens, int64_t d_model, int64_t layers) {
  constexpr double kMost = 8.0 * (1 << 30);
  const double each = 2.0 * sizeof(float) * static_cast<double>(d_model) * static_cast<double>(layers);
  const double bytes = each * static_cast<double>(tokens);
  HS_CHECK(bytes <= kMost, "comparing outputs on ", tokens, " tokens takes ", format_bytes(bytes),
           " of memory, more than ", format_bytes(kMost), "; give --map-tokens ", static_cast<int64_t>(kMost / each),
           " or less");
}

Attention working_layer(const AttentionOptions& options) {
  Attention layer(options);
  attach(*layer, std::make_shared<DropoutClock>());
  for (const Declared& one : declared_parameters(*layer)) one.tensor.zero_();
  layer->eval();
  return layer;
}

void SeenLayer::add(const Attention& layer, const Tensor& x, const HeadMask& mask, const Tensor& output) {
  passes_.push_back({x, mask, output});
  // The first token of a causal model sees itself alone, in every head.
  const int64_t first = mask.causal && x.size(1) > 1 ? 1 : 0;
  for (int64_t row = 0; row < x.size(0); ++row) {  // maps are large
    maps.add(attention_weights(layer, x.slice(0, row, row + 1), mask), first);
  }
}

double SeenLayer::output_change(const Attention& other) const {
  OutputChange change;
  for (const Pass& pass : passes_) change.add(pass.output, other->self(pass.x, pass.mask));
  return change.relative();
}

}  // namespace headshare
