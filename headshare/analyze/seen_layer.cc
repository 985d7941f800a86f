#include "headshare/analyze/seen_layer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace headshare {
namespace {

constexpr int64_t kLongestRow = 1024;

}  // namespace

Tensor first_tokens(const Tensor& sample, int64_t tokens) {
  const int64_t T = std::min(sample.size(1), kLongestRow);
  const int64_t rows = std::clamp<int64_t>(tokens / T, 1, sample.size(0));
  return sample.slice(0, 0, rows).slice(1, 0, T);
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
  double change = 0, of = 0;
  for (const Pass& pass : passes_) {
    change += (other->self(pass.x, pass.mask) - pass.output).square().sum(at::kDouble).item<double>();
    of += pass.output.square().sum(at::kDouble).item<double>();
  }
  return of == 0 ? 0 : std::sqrt(change / of);
}

}  // namespace headshare
