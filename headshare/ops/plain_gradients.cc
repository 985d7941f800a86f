#include "headshare/ops/plain_gradients.h"

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>

namespace headshare {
namespace {

// Returns what this thread leaves out of the dispatch, but for the keys that autograd needs.
c10::DispatchKeySet without_autograd_left_out() {
  return c10::impl::tls_local_dispatch_key_set().excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
}

}  // namespace

std::vector<Tensor> plain_gradients(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& piece,
                                    const std::vector<Tensor>& inputs, const std::vector<Tensor>& gradients) {
  const c10::impl::ForceDispatchKeyGuard with_autograd(c10::impl::tls_local_dispatch_key_set().included_,
                                                       without_autograd_left_out());
  const at::AutoGradMode enabled(true);
  std::vector<Tensor> leaves = inputs;
  std::vector<Tensor> wanted;
  for (Tensor& leaf : leaves) {
    if (!leaf.defined()) continue;
    leaf = leaf.detach().requires_grad_();
    wanted.push_back(leaf);
  }
  const std::vector<Tensor> outputs = piece(leaves);
  std::vector<Tensor> found = torch::autograd::grad(outputs, wanted, gradients, /*retain_graph=*/std::nullopt,
                                                    /*create_graph=*/false, /*allow_unused=*/true);
  std::vector<Tensor> all(inputs.size());
  auto next = found.begin();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    all[i] = next->defined() ? *next : at::zeros_like(inputs[i]);
    ++next;
  }
  return all;
}

}  // namespace headshare
