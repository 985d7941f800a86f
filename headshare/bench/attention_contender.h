// Contenders of the attention benchmarks are ways to compute the same heads from the same inputs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "headshare/bench/attention_case.h"
#include "headshare/bench/sdpa_kernel.h"

namespace headshare {

struct Contender {
  std::string name;
  std::string backend;      // what computes inside
  bool is_baseline = true;  // one of the torch forms; the fastest of them is what ratios refer to
  bool poses = false;       // it makes the problem of the scheme's queries and memory; else it gets it ready
  // Gradients are computed for these tensors. A contender that poses has the queries, the parts of the memory and,
  // where the problem has it, the query shift. Any other has the queries, keys and values (or one tensor that is both)
  // of the problem. Heads that the problem shares may stand here once each, as tensors of their own.
  std::vector<Tensor> leaves;
  std::function<Tensor()> heads;  // [B, heads of the problem, T, D]
};

// Makes headshare's choice for the problem, then the forms of torch's scaled_dot_product_attention:
//   torch_sdpa            every head's queries, keys and values lie ready
//   torch_sdpa_expanded   shared keys and values are seen as H heads without copying
//   torch_sdpa_gqa        the same through enable_gqa
//   torch_sdpa_padded     values get zeros up to the keys' width where keys are wider: torch has no fused kernel else
// Heads that share scores but not queries (mhe_add) reach torch as H ready queries, keys and values that are computed
// from the memory as they are. Decoding (T = 1) leaves out ready copies of a shared cache: they would be another
// scheme's cache. On a card each form follows once more under each of sdpa_kernels() that takes it
// ("torch_sdpa_gqa_flash").
std::vector<Contender> make_contenders(const CaseInputs& inputs);
std::vector<Contender> make_contenders(const CaseInputs& inputs, const std::vector<SdpaKernel>& kernels);

// These are the heads, and the gradients of all leaves for the heads' gradient `output_gradient`.
struct Gradients {
  Tensor heads;
  std::vector<Tensor> leaves;
};
Gradients run_training(const Contender& contender, const Tensor& output_gradient);

// Runs what is timed: heads alone without recording them, or heads and gradients.
void run_once(const Contender& contender, Pass pass, const Tensor& output_gradient);

}  // namespace headshare
