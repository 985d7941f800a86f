// The attention operations: attend() in two passes.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

#include <utility>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention/backends.h"
#include "headshare/ops/head_attention/passes.h"
#include "headshare/torch_library/glue.h"

namespace headshare::torch_library {
namespace {

using Maybe = std::optional<Tensor>;

// This is what the arguments of an operation say.
struct Call {
  HeadProblem problem;
  HeadMask mask;
  HeadDropout dropout;
};

#define HS_PROBLEM                                                                                            \
  const Tensor &query, const Tensor &key, const Tensor &value, int64_t heads, const Maybe &query_shift,       \
      const Maybe &key_bias, double scale, bool causal, const Maybe &visible_keys, const Maybe &alibi_slopes, \
      double dropout, const Maybe &dropout_key, bool shared_dropout
#define HS_PROBLEM_NAMES                                                                                            \
  query, key, value, heads, query_shift, key_bias, scale, causal, visible_keys, alibi_slopes, dropout, dropout_key, \
      shared_dropout

Call call_of(HS_PROBLEM) {
  check_probability(dropout);
  HS_CHECK(query.scalar_type() == key.scalar_type() && key.scalar_type() == value.scalar_type(),
           "queries, keys and values must be of one type, not ", query.scalar_type(), ", ", key.scalar_type(), " and ",
           value.scalar_type());
  HS_CHECK(dropout == 0 || dropout_key.has_value(), "dropout of ", dropout, " needs a key that names its mask");
  Call call{.problem = {.heads = heads,
                        .query = query,
                        .key = key,
                        .value = value,
                        .query_shift = or_undefined(query_shift),
                        .key_bias = or_undefined(key_bias),
                        .scale = scale},
            .mask = {.causal = causal,
                     .visible_keys = or_undefined(visible_keys),
                     .alibi_slopes = or_undefined(alibi_slopes)},
            .dropout = {.p = dropout, .shared = shared_dropout}};
  if (dropout > 0) call.dropout.key = stream_of(*dropout_key);
  return call;
}

// A backend is a number to the backward pass: its place in head_backends(), and this one for none.
constexpr uint8_t kNoBackend = 255;

Tensor number_of(const HeadBackend* backend) {
  uint8_t number = kNoBackend;
  for (size_t i = 0; i < head_backends().size(); ++i) {
    if (&head_backends()[i] == backend) number = static_cast<uint8_t>(i);
  }
  return at::full({1}, number, at::kByte);
}

const HeadBackend* backend_of(const Tensor& number) {
  HS_CHECK(number.scalar_type() == at::kByte && number.numel() == 1,
           "the backend of a backward pass is the number that the forward pass returned, not ", number.sizes());
  const auto i = number.item<uint8_t>();
  if (i == kNoBackend) return nullptr;
  HS_CHECK(i < head_backends().size(), "there are ", head_backends().size(), " backends, and none is number ",
           static_cast<int>(i));
  return &head_backends()[i];
}

// Returns an empty [B, heads, rows, width] that lies as [B, rows, heads, width].
Tensor heads_like(const Tensor& x) {
  return at::empty({x.size(0), x.size(2), x.size(1), x.size(3)}, x.options()).transpose(1, 2);
}

Tensor as_heads(const Tensor& x) { return laid_out_as(x, heads_like(x)); }

using Outputs = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

// Operations pass `by_head` as bool [B, H, T], of which blocks fill the beginning: a shape that is no quotient lets a
// compiled model take every T.
Tensor spread_blocks(const Tensor& by_head, int64_t B, int64_t heads, int64_t T) {
  const Tensor spread = at::zeros({B, heads, T}, by_head.options());
  spread.view(-1).narrow(0, 0, by_head.numel()).copy_(by_head.view(-1));
  return spread;
}

Tensor gathered_blocks(const Tensor& spread) {
  const int64_t B = spread.size(0), heads = spread.size(1), blocks = attend_blocks(spread.size(2));
  return spread.contiguous().view(-1).narrow(0, 0, B * heads * blocks).view({B, heads, blocks});
}

Outputs attention_forward_op(HS_PROBLEM, bool gradients) {
  const Call call = call_of(HS_PROBLEM_NAMES);
  const AttendPass pass = attend_forward(call.problem, call.mask, call.dropout, gradients);
  const at::TensorOptions floats = query.options().dtype(at::kFloat);
  const int64_t B = pass.out.size(0), T = pass.out.size(2);
  // A state has one shape whatever the backend, since whoever traces a model does not know the backend.
  const auto state = [&](const Tensor& x, at::IntArrayRef sizes, const at::TensorOptions& options) {
    if (!gradients) return at::empty({0}, options);
    return x.defined() ? x : at::zeros(sizes, options);
  };
  const Tensor by_head = pass.by_head.defined() ? spread_blocks(pass.by_head, B, heads, T) : Tensor();
  return {as_heads(pass.out), state(pass.lse, {B, heads, T}, floats), state(pass.m, {B, T}, floats),
          state(by_head, {B, heads, T}, floats.dtype(at::kBool)), number_of(pass.backend)};
}

// Throws Error unless the backend can have computed the problem.
void check_backend(const Call& call, const HeadBackend* backend) {
  HS_CHECK((backend == nullptr) == is_empty(call.problem), "the number of the backend does not fit an attention of ",
           call.problem.query.sizes(), " to ", call.problem.key.sizes());
  if (backend == nullptr) return;
  for (const std::string& reason : backend->why_not(call.problem, call.mask, call.dropout, /*gradients=*/true)) {
    throw Error(join_text("the backend ", backend->name, " did not compute this attention: ", reason));
  }
}

// Throws Error unless these are what the forward pass of the problem returned: kernels read them as they lie.
void check_state(const Call& call, const AttendPass& pass, const Tensor& gradient) {
  const HeadProblem& p = call.problem;
  const int64_t B = p.query.size(0), T = p.query.size(2);
  const std::vector<int64_t> heads = {B, p.heads, T, p.value.size(3)};
  HS_CHECK(pass.out.sizes() == heads && gradient.sizes() == heads, "the attention and its gradient must be [", B, ", ",
           p.heads, ", ", T, ", ", p.value.size(3), "], not ", pass.out.sizes(), " and ", gradient.sizes());
  HS_CHECK(pass.lse.sizes() == at::IntArrayRef({B, p.heads, T}) && pass.m.sizes() == at::IntArrayRef({B, T}) &&
               pass.by_head.sizes() == at::IntArrayRef({B, p.heads, T}),
           "what the forward pass left does not fit ", B, " sentences of ", T, " queries and ", p.heads,
           " heads: ", pass.lse.sizes(), ", ", pass.m.sizes(), ", ", pass.by_head.sizes());
  for (const Tensor* x : {&pass.out, &pass.lse, &pass.m, &pass.by_head, &gradient}) {
    check_same_device("a backward pass of attention", p.query, *x);
  }
  HS_CHECK(pass.lse.scalar_type() == at::kFloat && pass.m.scalar_type() == at::kFloat &&
               pass.by_head.scalar_type() == at::kBool,
           "what the forward pass left must be float32, float32 and bool, not ", pass.lse.scalar_type(), ", ",
           pass.m.scalar_type(), " and ", pass.by_head.scalar_type());
}

Outputs attention_backward_op(HS_PROBLEM, const Tensor& out, const Tensor& lse, const Tensor& m, const Tensor& by_head,
                              const Tensor& backend, const Tensor& gradient) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(at::autocast_dispatch_keyset);
  const Call call = call_of(HS_PROBLEM_NAMES);
  check_problem(call.problem, call.mask);
  AttendPass pass{
      .out = out, .lse = lse.contiguous(), .m = m.contiguous(), .by_head = by_head, .backend = backend_of(backend)};
  check_state(call, pass, gradient);
  check_backend(call, pass.backend);
  pass.by_head = gathered_blocks(by_head);
  const ProblemGradients found = attend_backward(call.problem, call.mask, call.dropout, pass, gradient);
  const auto beside = [&](const Tensor& x) { return x.defined() ? x.contiguous() : absent(query); };
  return {as_heads(found.query), as_heads(found.key), as_heads(found.value), beside(found.query_shift),
          beside(found.key_bias)};
}

std::vector<std::string> attention_backend_op(HS_PROBLEM, bool gradients) {
  const Call call = call_of(HS_PROBLEM_NAMES);
  check_problem(call.problem, call.mask);
  const HeadBackend& chosen = choose_head_backend(call.problem, call.mask, call.dropout, gradients);
  std::vector<std::string> lines = {std::string(chosen.name)};
  for (const HeadBackend& backend : head_backends()) {
    if (&backend == &chosen) break;
    for (const std::string& reason : backend.why_not(call.problem, call.mask, call.dropout, gradients)) {
      lines.push_back(join_text(backend.name, ": ", reason));
    }
  }
  return lines;
}

}  // namespace

static void add_attention(torch::Library& m) {
  m.impl("attention_forward", attention_forward_op);
  m.impl("attention_backward", attention_backward_op);
  m.impl("attention_backend", attention_backend_op);
}
HS_OPERATIONS(add_attention);
#undef HS_PROBLEM
#undef HS_PROBLEM_NAMES

}  // namespace headshare::torch_library
