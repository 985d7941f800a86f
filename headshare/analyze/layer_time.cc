#include "headshare/analyze/layer_time.h"

#include <ATen/ATen.h>

#include "headshare/analyze/seen_layer.h"

namespace headshare {
namespace {

Attention random_layer(const AttentionOptions& options) {
  Attention layer = working_layer(options);
  initialise(*layer, /*seed=*/0);
  return layer;
}

std::function<void()> decoding_step(const AttentionOptions& options, int64_t tokens) {
  const Attention layer = random_layer(options);
  KvCache filled(tokens);
  if (tokens > 1) filled.append(layer->scheme().remember(at::zeros({1, tokens - 1, options.d_model}), 0));
  const Tensor x = at::zeros({1, 1, options.d_model});
  // A copy of a cache shares its room and has a length of its own: each step writes the last token again.
  return [layer, filled, x] {
    KvCache cache = filled;
    layer->self(x, {.causal = true}, &cache);
  };
}

std::function<void()> whole_pass(const AttentionOptions& options, int64_t tokens) {
  const Attention layer = random_layer(options);
  const Tensor x = at::zeros({1, tokens, options.d_model});
  return [layer, x] { layer->self(x, {}); };
}

}  // namespace

std::vector<double> layer_milliseconds(const std::vector<AttentionOptions>& layers, const LayerWork& work,
                                       const TurnOptions& turns) {
  const at::NoGradGuard no_grad;
  std::vector<std::function<void()>> actions;
  for (const AttentionOptions& one : layers) {
    actions.push_back(work.decoding ? decoding_step(one, work.tokens) : whole_pass(one, work.tokens));
  }
  std::vector<double> milliseconds;
  for (const Timing& one : take_turns(actions, turns)) milliseconds.push_back(one.minimum_ms);
  return milliseconds;
}

}  // namespace headshare
