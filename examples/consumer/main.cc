// What a project gets from an installed headshare: an attention layer by the name of its scheme.
#include <ATen/ATen.h>

#include <iostream>

#include "headshare/attention/attention.h"

int main() {
  using namespace headshare;
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::ones({1, 3, 64});  // [B, T, E]
  for (const std::string scheme : {"mha", "mhe_mul"}) {
    Attention layer(AttentionOptions{.scheme = scheme, .d_model = 64, .heads = 4});
    initialise(*layer, /*seed=*/1);
    const at::Tensor y = layer->self(x, {.causal = true});  // [B, T, E]
    const AttentionCost cost = layer->scheme().cost();
    std::cout << scheme << ": " << cost.parameters << " parameters, " << cost.cache_elements
              << " cached elements per token, output " << y.sizes() << "\n";
  }
}
