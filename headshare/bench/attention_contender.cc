#include "headshare/bench/attention_contender.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "headshare/base/error.h"
#include "headshare/bench/sdpa_kernel.h"
#include "headshare/ops/head_attention/backends.h"

namespace headshare {
namespace {

Contender headshare_contender(const CaseInputs& in) {
  const HeadProblem problem = in.problem();
  const at::AutoGradMode as_timed(in.cache == nullptr);  // a cache is read without gradients
  std::vector<Tensor> leaves = {in.queries};
  leaves.insert(leaves.end(), in.memory.begin(), in.memory.end());
  if (problem.query_shift.defined()) leaves.push_back(problem.query_shift);
  return {.name = "headshare",
          .backend = std::string(choose_head_backend(problem, in.mask, in.dropout).name),
          .is_baseline = false,
          .poses = true,
          .leaves = std::move(leaves),
          .heads = [in] { return attend(in.problem(), in.mask, in.dropout); }};
}

// Returns x with every head of its own, heads side by side in memory, as a leaf.
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
bool causal_for_torch(const CaseInputs& in) {
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
  std::optional<SdpaKernel> only = {};  // libtorch must take this kernel
};

Tensor sdpa(const Tensor& query, const Tensor& key, const Tensor& value, const SdpaOptions& o) {
  const OnlySdpaKernel kernel(o.only);
  return at::scaled_dot_product_attention(query, key, value, /*attn_mask=*/{}, o.dropout, o.causal, o.scale, o.grouped);
}

// Names the kernel that torch takes inside, as its own dispatcher tells; "" where the one that it must take refuses.
std::string sdpa_kernel(const Tensor& query, const Tensor& key, const Tensor& value, const SdpaOptions& o) {
  const OnlySdpaKernel kernel(o.only);
  const auto choice = chosen_sdpa([&] {
    return at::_fused_sdp_choice(query, key, value, /*attn_mask=*/{}, o.dropout, o.causal, o.scale, o.grouped);
  });
  if (o.only) return choice == o.only->backend ? o.only->name : "";
  return choice == at::SDPBackend::math ? "math" : "fused";
}

// Torch gets these tensors.
struct Ready {
  Tensor query, key;                  // leaves
  Tensor own_value;                   // a leaf; undefined where the values are in the keys
  std::optional<int64_t> first = {};  // values_in_keys()
  int64_t width = 0;                  // of the values

  Tensor value() const {
    if (!first) return own_value;
    return *first == 0 && width == key.size(3) ? key : key.slice(3, *first, *first + width);
  }

  std::vector<Tensor> leaves() const {
    std::vector<Tensor> leaves = {query, key};
    if (!first) leaves.push_back(own_value);
    return leaves;
  }
};

// Makes torch's tensors; `leaf` makes a leaf of the problem's keys or values.
template <class Leaf>
Ready ready(const HeadProblem& problem, const Tensor& query, const Leaf& leaf) {
  Ready ready{.query = query,
              .key = leaf(problem.key),
              .own_value = {},
              .first = values_in_keys(problem),
              .width = problem.value.size(3)};
  if (!ready.first) ready.own_value = leaf(problem.value);
  return ready;
}

Contender sdpa_contender(std::string name, const Ready& in, const SdpaOptions& options) {
  return {.name = std::move(name),
          .backend = sdpa_kernel(in.query, in.key, in.value(), options),
          .leaves = in.leaves(),
          .heads = [=] { return sdpa(in.query, in.key, in.value(), options); }};
}

Contender expanded_contender(const Ready& in, int64_t heads, const SdpaOptions& options) {
  const auto seen = [heads](const Tensor& x) { return expand_heads(x, heads); };
  return {.name = "torch_sdpa_expanded",
          .backend = sdpa_kernel(in.query, seen(in.key), seen(in.value()), options),
          .leaves = in.leaves(),
          .heads = [=] { return sdpa(in.query, seen(in.key), seen(in.value()), options); }};
}

Contender padded_contender(const Ready& in, const SdpaOptions& options) {
  const auto wide = [in] { return at::constant_pad_nd(in.value(), {0, in.key.size(3) - in.width}); };
  return {.name = "torch_sdpa_padded",
          .backend = sdpa_kernel(in.query, in.key, wide(), options),
          .leaves = in.leaves(),
          .heads = [=] { return sdpa(in.query, in.key, wide(), options).slice(3, 0, in.width); }};
}

// Lists torch's forms of the problem under one choice of kernels.
std::vector<Contender> sdpa_forms(const HeadProblem& problem, const SdpaOptions& plain) {
  const int64_t H = problem.heads;
  const bool shared_memory = problem.key.size(1) < H || problem.value.size(1) < H;
  const Tensor query = ready_queries(problem);
  const Ready shared =
      ready(problem, query, [](const Tensor& x) { return x.detach().requires_grad_(x.requires_grad()); });
  if (!shared_memory) return {sdpa_contender("torch_sdpa", shared, plain)};
  std::vector<Contender> forms;
  if (problem.query.size(2) > 1) {
    const Ready own = ready(problem, query, [H](const Tensor& x) { return ready_heads(x, H); });
    forms.push_back(sdpa_contender("torch_sdpa", own, plain));
    if (problem.key.size(3) > problem.value.size(3)) forms.push_back(padded_contender(own, plain));
  }
  forms.push_back(expanded_contender(shared, H, plain));
  if (problem.key.size(1) == problem.value.size(1)) {
    SdpaOptions grouped = plain;
    grouped.grouped = true;
    forms.push_back(sdpa_contender("torch_sdpa_gqa", shared, grouped));
  }
  return forms;
}

}  // namespace

std::vector<Contender> make_contenders(const CaseInputs& in) {
  return make_contenders(in, sdpa_kernels(in.queries.device()));
}

std::vector<Contender> make_contenders(const CaseInputs& in, const std::vector<SdpaKernel>& kernels) {
  const HeadProblem problem = in.problem();
  SdpaOptions options = {
      .dropout = in.dropout.active() ? in.dropout.p : 0, .scale = problem.scale, .causal = causal_for_torch(in)};
  std::vector<Contender> contenders = {headshare_contender(in)};
  for (Contender& form : sdpa_forms(problem, options)) contenders.push_back(std::move(form));
  for (const SdpaKernel& kernel : kernels) {
    options.only = kernel;
    for (Contender& form : sdpa_forms(problem, options)) {
      if (form.backend.empty()) continue;  // the kernel does not take this form
      form.name += "_" + kernel.name;
      contenders.push_back(std::move(form));
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
