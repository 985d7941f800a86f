#include "headshare/bench/attention_contender.h"

#include <ATen/ATen.h>
#include <ATen/SDPBackend.h>
#include <torch/csrc/autograd/autograd.h>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention_backends.h"

namespace headshare {
namespace {

// The leaf that a view of the problem was made of: the scheme's own parameter, or an input.
std::vector<Tensor> leaves_of(const AttentionInputs& in, const HeadProblem& problem) {
  std::vector<Tensor> leaves = {in.queries};
  leaves.insert(leaves.end(), in.memory.begin(), in.memory.end());
  if (problem.query_shift.defined()) leaves.push_back(problem.query_shift);
  return leaves;
}

Contender headshare_contender(const AttentionInputs& in) {
  const HeadProblem problem = in.problem();
  const at::AutoGradMode as_timed(in.cache == nullptr);  // a cache is read without gradients
  const HeadBackend& backend = choose_head_backend(problem, in.mask, in.dropout);
  return {.name = "headshare",
          .backend = std::string(backend.name),
          .is_baseline = false,
          .leaves = leaves_of(in, problem),
          .heads = [in] { return attend(in.problem(), in.mask, in.dropout); }};
}

// x with every head of its own, heads side by side in memory, as a leaf.
Tensor ready_heads(const Tensor& x, int64_t heads) {
  const at::NoGradGuard no_grad;
  const Tensor side_by_side = expand_heads(x, heads).transpose(1, 2).contiguous();
  return side_by_side.transpose(1, 2).detach().requires_grad_();
}

Tensor ready_queries(const HeadProblem& problem) {
  const at::NoGradGuard no_grad;
  const Tensor own = expand_heads(problem.query, problem.heads);
  return ready_heads(problem.query_shift.defined() ? own + problem.query_shift.unsqueeze(1) : own, problem.heads);
}

// Causal masks of scaled_dot_product_attention are aligned top-left; one query of a cache sees all of it.
bool causal_for_torch(const AttentionInputs& in) {
  const int64_t T = in.queries.size(2);
  HS_CHECK(!in.mask.causal || T == 1 || T == in.memory[0].size(2),
           "attention benchmarks need as many keys as queries under a causal mask, or one query");
  return in.mask.causal && T > 1;
}

struct SdpaOptions {
  double dropout = 0;
  double scale = 1;
  bool causal = false;
  bool grouped = false;
};

Tensor sdpa(const Tensor& query, const Tensor& key, const Tensor& value, const SdpaOptions& o) {
  return at::scaled_dot_product_attention(query, key, value, /*attn_mask=*/{}, o.dropout, o.causal, o.scale, o.grouped);
}

// Which kernel torch takes inside, as its own dispatcher tells.
std::string sdpa_kernel(const Tensor& query, const Tensor& key, const Tensor& value, const SdpaOptions& o) {
  const int64_t choice =
      at::_fused_sdp_choice(query, key, value, /*attn_mask=*/{}, o.dropout, o.causal, o.scale, o.grouped);
  return choice == static_cast<int64_t>(at::SDPBackend::math) ? "math" : "fused";
}

Contender sdpa_contender(std::string name, std::vector<Tensor> leaves, const SdpaOptions& options) {
  const Tensor query = leaves[0], key = leaves[1], value = leaves.back();
  const std::string kernel = sdpa_kernel(query, key, value, options);
  return {.name = std::move(name), .backend = kernel, .leaves = std::move(leaves), .heads = [=] {
            return sdpa(query, key, value, options);
          }};
}

Contender expanded_contender(std::vector<Tensor> leaves, int64_t heads, const SdpaOptions& options) {
  const Tensor query = leaves[0], key = leaves[1], value = leaves.back();
  const std::string kernel = sdpa_kernel(query, expand_heads(key, heads), expand_heads(value, heads), options);
  return {.name = "torch_sdpa_expanded", .backend = kernel, .leaves = std::move(leaves), .heads = [=] {
            return sdpa(query, expand_heads(key, heads), expand_heads(value, heads), options);
          }};
}

Contender padded_contender(std::vector<Tensor> leaves, const SdpaOptions& options) {
  const Tensor query = leaves[0], key = leaves[1], value = leaves.back();
  const int64_t missing = key.size(3) - value.size(3);
  const auto run = [=] {
    const Tensor wide = at::constant_pad_nd(value, {0, missing});
    return sdpa(query, key, wide, options).slice(3, 0, value.size(3));
  };
  return {.name = "torch_sdpa_padded",
          .backend = sdpa_kernel(query, key, at::constant_pad_nd(value, {0, missing}), options),
          .is_baseline = false,
          .leaves = std::move(leaves),
          .heads = run};
}

}  // namespace

std::vector<Contender> make_contenders(const AttentionInputs& in) {
  const HeadProblem problem = in.problem();
  const int64_t H = problem.heads;
  const SdpaOptions plain = {
      .dropout = in.dropout.active() ? in.dropout.p : 0, .scale = problem.scale, .causal = causal_for_torch(in)};
  const bool shared_memory = problem.key.size(1) < H || problem.value.size(1) < H;
  std::vector<Contender> contenders = {headshare_contender(in)};
  const Tensor query = ready_queries(problem);
  std::vector<Tensor> shared = {query};
  shared.insert(shared.end(), in.memory.begin(), in.memory.end());
  if (!shared_memory) {
    contenders.push_back(sdpa_contender("torch_sdpa", shared, plain));
  } else {
    if (problem.query.size(2) > 1) {
      std::vector<Tensor> ready = {query};
      for (const Tensor& part : in.memory) ready.push_back(ready_heads(part, H));
      contenders.push_back(sdpa_contender("torch_sdpa", ready, plain));
      if (problem.key.size(3) > problem.value.size(3)) contenders.push_back(padded_contender(ready, plain));
    }
    contenders.push_back(expanded_contender(shared, H, plain));
    if (problem.key.size(1) == problem.value.size(1)) {
      SdpaOptions grouped = plain;
      grouped.grouped = true;
      contenders.push_back(sdpa_contender("torch_sdpa_gqa", shared, grouped));
    }
  }
  return contenders;
}

Gradients run_training(const Contender& contender, const Tensor& output_gradient) {
  const Tensor heads = contender.heads();
  return {heads, torch::autograd::grad({heads}, contender.leaves, {output_gradient})};
}

void run_once(const Contender& contender, Pass pass, const Tensor& output_gradient) {
  if (pass == Pass::kTraining) {
    run_training(contender, output_gradient);
    return;
  }
  const at::NoGradGuard no_grad;
  contender.heads();
}

}  // namespace headshare
