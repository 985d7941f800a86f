#include "headshare/ops/head_attention/head_attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>

#include "headshare/base/error.h"
#include "headshare/base/options/nearest.h"
#include "headshare/ops/head_attention/backends.h"

namespace headshare {
namespace {

void check_head_count(const char* what, const Tensor& x, int64_t heads) {
  HS_CHECK(x.dim() == 4 && x.size(1) > 0 && heads % x.size(1) == 0, what,
           " must be [batch, heads, length, width] with ", "a number of heads that divides ", heads, ", not ",
           x.sizes());
  HS_CHECK(x.size(3) > 0, what, " must be at least 1 wide, not ", x.sizes());
}

// Kernels read these as they lie: a wrong shape would be a read past their end.
void check_shapes_beside(const HeadProblem& p, const HeadMask& mask) {
  const int64_t B = p.key.size(0), S = p.key.size(2), Dk = p.key.size(3);
  HS_CHECK(!p.query_shift.defined() || (p.query.size(1) == 1 && p.key.size(1) == 1),
           "a content bias for each head needs one head of queries and keys, not ", p.query.size(1), " and ",
           p.key.size(1));
  HS_CHECK(!p.query_shift.defined() || p.query_shift.sizes() == at::IntArrayRef({p.heads, Dk}),
           "the content bias must be [heads, width] = [", p.heads, ", ", Dk, "], not ",
           p.query_shift.defined() ? join_text(p.query_shift.sizes()) : "");
  HS_CHECK(!p.key_bias.defined() || p.key_bias.sizes() == at::IntArrayRef({B, p.heads, S}),
           "the bias of the keys must be [batch, heads, keys] = [", B, ", ", p.heads, ", ", S, "], not ",
           p.key_bias.defined() ? join_text(p.key_bias.sizes()) : "");
  HS_CHECK(!p.sinks.defined() || p.sinks.sizes() == at::IntArrayRef({p.heads}), "attention needs a sink for each of ",
           p.heads, " heads, not ", p.sinks.defined() ? join_text(p.sinks.sizes()) : "");
  HS_CHECK(!mask.alibi_slopes.defined() || mask.alibi_slopes.sizes() == at::IntArrayRef({p.heads}),
           "ALiBi needs a slope for each of ", p.heads, " heads, not ",
           mask.alibi_slopes.defined() ? join_text(mask.alibi_slopes.sizes()) : "");
}

void check_types_and_devices(const HeadProblem& p, const HeadMask& mask) {
  for (const Tensor* x : {&p.query, &p.key, &p.value, &p.query_shift, &p.key_bias, &p.sinks, &mask.alibi_slopes}) {
    HS_CHECK(!x->defined() || x->is_floating_point(), "attention takes floating-point tensors, not ", x->scalar_type(),
             " ", x->sizes());
  }
  for (const Tensor* x :
       {&p.key, &p.value, &p.query_shift, &p.key_bias, &p.sinks, &mask.visible_keys, &mask.alibi_slopes}) {
    HS_CHECK(!x->defined() || x->device() == p.query.device(),
             "all tensors of an attention must be on one device, not ", p.query.device(), " and ", x->device());
  }
}

}  // namespace

void check_problem(const HeadProblem& p, const HeadMask& mask) {
  HS_CHECK(p.heads > 0, "attention needs at least one head, not ", p.heads);
  check_head_count("attention queries", p.query, p.heads);
  check_head_count("attention keys", p.key, p.heads);
  check_head_count("attention values", p.value, p.heads);
  HS_CHECK(p.query.size(3) == p.key.size(3), "queries and keys must have the same width: ", p.query.sizes(), " and ",
           p.key.sizes());
  HS_CHECK(p.key.size(2) == p.value.size(2), "keys and values must have the same length: ", p.key.sizes(), " and ",
           p.value.sizes());
  HS_CHECK(p.query.size(0) == p.key.size(0) && p.key.size(0) == p.value.size(0),
           "queries, keys and values must have the same batch: ", p.query.sizes(), ", ", p.key.sizes(), " and ",
           p.value.sizes());
  check_types_and_devices(p, mask);
  check_shapes_beside(p, mask);
  const auto& visible = mask.visible_keys;
  HS_CHECK(mask.window >= 0, "a window reaches over at least 0 positions, not ", mask.window);
  HS_CHECK(!visible.defined() || (visible.scalar_type() == at::kBool && visible.dim() == 2 &&
                                  visible.size(0) == p.key.size(0) && visible.size(1) == p.key.size(2)),
           "the padding mask must be bool [batch, keys] = [", p.key.size(0), ", ", p.key.size(2), "], not ",
           visible.defined() ? join_text(visible.scalar_type(), " ", visible.sizes()) : "");
}

bool is_empty(const HeadProblem& p) { return p.value.size(2) == 0 || p.query.size(2) == 0 || p.query.size(0) == 0; }

namespace {

std::string refusal(const HeadBackend& backend, const std::vector<std::string>& reasons) {
  std::string text = join_text("\n  ", backend.name, ":");
  for (const std::string& reason : reasons) text += " " + reason + ";";
  return text;
}

const HeadBackend& forced_backend(const char* name, const HeadProblem& problem, const HeadMask& mask,
                                  const HeadDropout& dropout, std::optional<bool> gradients) {
  std::vector<std::string> names;
  for (const HeadBackend& backend : head_backends()) {
    names.emplace_back(backend.name);
    if (backend.name != name) continue;
    const auto reasons = backend.why_not(problem, mask, dropout, gradients);
    HS_CHECK(reasons.empty(), "HEADSHARE_BACKEND=", name, " cannot run this attention:", refusal(backend, reasons));
    return backend;
  }
  std::string known;
  for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
  throw Error(
      join_text("HEADSHARE_BACKEND=", name, " names no backend", did_you_mean(name, names), "; known are ", known));
}

bool needs_gradients(const HeadProblem& p) {
  if (!at::GradMode::is_enabled()) return false;
  const auto needs = [](const Tensor& x) { return x.defined() && x.requires_grad(); };
  return needs(p.query) || needs(p.key) || needs(p.value) || needs(p.query_shift) || needs(p.key_bias) ||
         needs(p.sinks);
}

}  // namespace

std::vector<std::string> HeadBackend::why_not(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout,
                                              std::optional<bool> gradients) const {
  std::vector<std::string> reasons = objections(p, mask, dropout);
  const c10::Device given = p.query.device();
  if (device && *device != given.type()) {
    const std::string own = c10::DeviceTypeName(*device);
    reasons.insert(reasons.begin(), join_text("its kernels are for the ", own, ", not ", given.str()));
  }
  if (!has_gradients && gradients.value_or(needs_gradients(p))) reasons.emplace_back("it has no gradients");
  return reasons;
}

const std::vector<HeadBackend>& head_backends() {
  static const std::vector<HeadBackend> backends = {kDecodeBackend, kFactorisedBackend, kFusedBackend,
                                                    kSdpaBackend,   kBlockedBackend,    kReferenceBackend};
  return backends;
}

const HeadBackend& choose_head_backend(const HeadProblem& problem, const HeadMask& mask, const HeadDropout& dropout,
                                       std::optional<bool> gradients) {
  const char* forced = std::getenv("HEADSHARE_BACKEND");
  if (forced != nullptr && *forced != '\0') return forced_backend(forced, problem, mask, dropout, gradients);
  std::string refused;
  for (const HeadBackend& backend : head_backends()) {
    const auto reasons = backend.why_not(problem, mask, dropout, gradients);
    if (reasons.empty()) return backend;
    refused += refusal(backend, reasons);
  }
  throw Error("no attention backend can run this problem:" + refused);
}

BackendChoice explain_head_backend(const HeadProblem& problem, const HeadMask& mask, const HeadDropout& dropout) {
  const HeadBackend& chosen = choose_head_backend(problem, mask, dropout);
  BackendChoice choice{.backend = chosen.name, .products = chosen.products(problem)};
  if (chosen.is_fused != nullptr) choice.fused = chosen.is_fused(problem, mask);
  for (const HeadBackend& backend : head_backends()) {
    if (&backend == &chosen) break;
    choice.refused.push_back({backend.name, backend.why_not(problem, mask, dropout)});
  }
  return choice;
}

Tensor attend(const HeadProblem& problem, const HeadMask& mask, const HeadDropout& dropout) {
  check_problem(problem, mask);
  const auto& q = problem.query;
  if (is_empty(problem)) return at::zeros({q.size(0), problem.heads, q.size(2), problem.value.size(3)}, q.options());
  return choose_head_backend(problem, mask, dropout).run(problem, mask, dropout);
}

Tensor live_queries(const HeadProblem& problem, const HeadMask& mask) {
  return live_queries(problem, mask, problem.key.size(2) - problem.query.size(2));
}

Tensor live_queries(const HeadProblem& problem, const HeadMask& mask, int64_t first) {
  const int64_t T = problem.query.size(2), S = problem.key.size(2), W = mask.window;
  const auto options = problem.key.options().dtype(at::kBool);
  if (S == 0) return at::zeros({1, T}, options);
  const bool too_early = mask.causal ? first < 0 : W > 0 && first + W < 0;
  const bool too_late = W > 0 && first + T - 1 - W >= S;
  if (!mask.visible_keys.defined() && !too_early && !too_late) return {};
  if (!mask.causal && W == 0) return mask.visible_keys.any(1, /*keepdim=*/true).expand({mask.visible_keys.size(0), T});
  const Tensor place = at::arange(first, first + T, options.dtype(at::kLong));
  // Query i may see the keys from `begin` to before `end`, if there are any.
  const Tensor begin = W > 0 ? (place - W).clamp(0, S) : at::zeros_like(place);
  const Tensor end = (mask.causal ? place + 1 : place + (W + 1)).clamp(0, S);
  if (!mask.visible_keys.defined()) return (begin < end).unsqueeze(0);                           // [1, T]
  const Tensor before = at::constant_pad_nd(mask.visible_keys.to(at::kLong).cumsum(1), {1, 0});  // [B, S + 1]
  return before.index_select(1, end) > before.index_select(1, begin);                            // [B, T]
}

bool has_window(const HeadProblem& problem, const HeadMask& mask) {
  return has_window(problem, mask, problem.key.size(2) - problem.query.size(2));
}

bool has_window(const HeadProblem& problem, const HeadMask& mask, int64_t first) {
  const int64_t T = problem.query.size(2), S = problem.key.size(2);
  const int64_t back = first + T - 1, ahead = mask.causal ? 0 : S - 1 - first;  // the longest distances
  return mask.window > 0 && std::max(back, ahead) > mask.window;
}

}  // namespace headshare
