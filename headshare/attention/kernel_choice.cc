#include "headshare/attention/kernel_choice.h"

#include <ATen/ATen.h>

#include "headshare/attention/attention.h"

namespace headshare {

BackendChoice kernel_choice(const AttentionOptions& options, const AttentionSituation& of, c10::Device device) {
  // The problem is posed as in a model: only training wants gradients, and autocast decides what products get.
  const at::AutoGradMode gradients(of.training);
  const ComputeIn computing(of.precision, device.type());
  Attention layer(options);
  layer->to(device);
  layer->train(of.training);
  HeadMask mask{.causal = of.causal};
  if (of.padding) mask.visible_keys = at::ones({of.batch, of.keys}, at::TensorOptions(device).dtype(at::kBool));
  const auto hidden_states = [&](int64_t length) { return at::zeros({of.batch, length, options.d_model}, device); };
  const PosedAttention asked = layer->pose(hidden_states(of.queries), hidden_states(of.keys), mask);
  return explain_head_backend(asked.posed.problem, asked.mask, asked.dropout);
}

}  // namespace headshare
