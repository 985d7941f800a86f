#include "headshare/ops/cross_entropy.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>

#include "headshare/base/error.h"
#include "headshare/kernels/bf16.h"
#include "headshare/kernels/passes.h"
#include "headshare/kernels/tiles.h"
#include "headshare/ops/op_passes.h"
#include "headshare/ops/parallel.h"
#include "headshare/ops/precision.h"
#include "headshare/ops/product.h"
#include "headshare/ops/second_derivative.h"

namespace headshare {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A chunk has at most so many scores. Every chunk reads the whole embedding twice and adds to its whole gradient, so
// that chunks must not be small: of GPT-2's vocabulary 2^25, 128 MiB of float32, are 512 rows.
constexpr int64_t kMostScores = int64_t{1} << 25;

struct Found {
  Tensor losses;              // [N], cross entropies
  Tensor divergences;         // [N], where there is a teacher
  Tensor hidden_gradient;     // [N, E], where wanted
  Tensor embedding_gradient;  // [V, E], where wanted
  Tensor bias_gradient;       // [V], where wanted
};

// This is a teacher with what becomes of its rows; without rows there is none.
struct Teaching {
  TeacherRows rows = {};
  Distillation how = {};

  explicit operator bool() const { return rows.hidden.defined(); }
};

at::ScalarType sum_type(at::ScalarType products) {
  return products == at::kBFloat16 || products == at::kHalf ? at::kFloat : products;
}

// This is what a teacher adds to slopes: they become own * slopes + by * rows. Without rows they stay as they are.
struct Pulls {
  Tensor rows = {};  // [n, V], of the scores' type
  double own = 1, by = 0;
};

// Writes the losses of rows; where wanted, `slopes` become d loss / d score = softmax - one-hot target, with what the
// teacher adds. They may be the scores themselves.
void softmax_block(const Tensor& scores, const Tensor& targets, const Tensor& losses, const Tensor& slopes,
                   const Pulls& pulls) {
  const Tensor index = targets.unsqueeze(1);  // [n, 1]
  const Tensor logs = at::log_softmax(scores, 1);
  losses.copy_(logs.gather(1, index).squeeze(1).neg_());
  if (!slopes.defined()) return;
  Tensor found = logs.exp().scatter_add_(1, index, at::full(index.sizes(), -1, logs.options()));
  if (pulls.rows.defined()) found.mul_(pulls.own).add_(pulls.rows, pulls.by);
  slopes.copy_(found);
}

// Does the same by headshare's pass, a row at a time: each is read from memory once and written once. Slopes are float
// like the scores and take their place, or bfloat16.
void softmax_floats(const Tensor& scores, const Tensor& targets, const Tensor& losses, const Tensor& slopes,
                    const Pulls& pulls) {
  const int64_t V = scores.size(1);
  const Tensor flat = targets.contiguous();
  const int64_t* target = flat.const_data_ptr<int64_t>();
  auto* loss = losses.mutable_data_ptr<float>();
  const auto own = static_cast<float>(pulls.own), by = static_cast<float>(pulls.by);
  torch_threads().run(scores.size(0), [&](int64_t row, int64_t) {
    float* values = scores.mutable_data_ptr<float>() + row * scores.stride(0);
    const double found = kernels::passes().cross_entropy(values, V, target[row], slopes.defined() ? values : nullptr);
    loss[row] = static_cast<float>(found);
    if (!slopes.defined()) return;
    if (pulls.rows.defined()) {
      const float* pull = pulls.rows.const_data_ptr<float>() + row * pulls.rows.stride(0);
      for (int64_t i = 0; i < V; ++i) values[i] = own * values[i] + by * pull[i];
    }
    if (slopes.scalar_type() == at::kFloat) return;
    auto* narrow = static_cast<kernels::Bf16*>(slopes.mutable_data_ptr()) + row * slopes.stride(0);
    kernels::tiles().narrow(values, V, /*rows=*/1, V, narrow, V);
  });
}

// Writes KL(teacher || student) of each row at temperature T; the teacher's scores become
// softmax(scores / T) - softmax(teacher / T).
void diverge_block(const Tensor& scores, const Tensor& teacher, double temperature, const Tensor& divergences) {
  const Tensor own = at::log_softmax(scores / temperature, 1);
  const Tensor wanted = at::log_softmax(teacher / temperature, 1);
  const Tensor shares = wanted.exp();
  divergences.copy_((shares * (wanted - own)).sum(1));
  teacher.copy_(own.exp() - shares);
}

void diverge_floats(const Tensor& scores, const Tensor& teacher, double temperature, const Tensor& divergences) {
  auto* found = divergences.mutable_data_ptr<float>();
  torch_threads().run(scores.size(0), [&](int64_t row, int64_t) {
    const float* own = scores.const_data_ptr<float>() + row * scores.stride(0);
    float* other = teacher.mutable_data_ptr<float>() + row * teacher.stride(0);
    found[row] = static_cast<float>(kernels::passes().divergence(own, other, scores.size(1), temperature, other));
  });
}

bool takes_passes(const Tensor& scores) { return scores.is_cpu() && scores.scalar_type() == at::kFloat; }

void softmax_rows(const Tensor& scores, const Tensor& targets, const Tensor& losses, const Tensor& slopes,
                  const Pulls& pulls) {
  const bool ours = takes_passes(scores) && (!slopes.defined() || slopes.scalar_type() != at::kHalf);
  ours ? softmax_floats(scores, targets, losses, slopes, pulls) : softmax_block(scores, targets, losses, slopes, pulls);
}

void diverge_rows(const Tensor& scores, const Tensor& teacher, double temperature, const Tensor& divergences) {
  takes_passes(scores) ? diverge_floats(scores, teacher, temperature, divergences)
                       : diverge_block(scores, teacher, temperature, divergences);
}

// Writes W h + b into `scores`.
void score(const Tensor& h, const Tensor& embedding, const Tensor& bias, const Tensor& scores) {
  const FloatProducts products = float_products_in_use();
  if (bias.defined()) {
    multiply_add_row(h, embedding.t(), bias, scores, products);
  } else {
    multiply(h, embedding.t(), scores, Into::kReplace, products);
  }
}

class Chunks {
 public:
  // An undefined bias means that there is none.
  Chunks(const Tensor& hidden, const Tensor& embedding, const Tensor& bias, const Tensor& targets,
         at::ScalarType products, const Teaching& teaching = {})
      : products_(products),
        hidden_(hidden.to(products_)),
        embedding_(embedding.to(products_)),
        targets_(targets),
        how_(teaching.how) {
    if (bias.defined()) bias_ = bias.to(sum_type(products_));
    if (!teaching) return;
    const TeacherRows& rows = teaching.rows;
    teacher_ = {.hidden = rows.hidden.to(products_), .embedding = rows.embedding.to(products_)};
    if (rows.bias.defined()) teacher_.bias = rows.bias.to(sum_type(products_));
  }

  Found run(const LossWants& wanted) {
    const int64_t N = hidden_.size(0);
    const int64_t V = embedding_.size(0);
    const auto sums = hidden_.options().dtype(sum_type(products_));
    Found found;
    found.losses = at::empty({N}, sums);
    if (taught()) found.divergences = at::empty({N}, sums);
    if (wanted.hidden) found.hidden_gradient = at::empty(hidden_.sizes(), sums);
    if (wanted.embedding) found.embedding_gradient = at::empty(embedding_.sizes(), sums);
    if (wanted.embedding && N == 0) found.embedding_gradient.zero_();
    if (wanted.bias) found.bias_gradient = at::zeros({V}, sums);
    const int64_t chunk = cross_entropy_chunk(N, V);
    const Tensor scores = at::empty({std::min(chunk, N), V}, sums);
    if (taught()) pulls_ = at::empty(scores.sizes(), sums);
    Tensor slopes;
    if (wanted.any()) {
      slopes = sum_type(products_) == products_ ? scores : at::empty(scores.sizes(), hidden_.options());
    }
    for (int64_t first = 0; first < N; first += chunk) {
      const int64_t rows = std::min(chunk, N - first);
      one(first, scores.narrow(0, 0, rows), slopes.defined() ? slopes.narrow(0, 0, rows) : slopes, found);
    }
    return found;
  }

 private:
  bool taught() const { return teacher_.hidden.defined(); }

  void one(int64_t first, const Tensor& scores, const Tensor& slopes, const Found& found) const {
    const int64_t rows = scores.size(0);
    const Tensor h = hidden_.narrow(0, first, rows);
    score(h, embedding_, bias_, scores);
    const Pulls pulls = taught() ? teacher_pulls(first, scores, found) : Pulls();
    softmax_rows(scores, targets_.narrow(0, first, rows), found.losses.narrow(0, first, rows), slopes, pulls);
    if (found.bias_gradient.defined()) {
      Tensor total = found.bias_gradient;
      total.add_(slopes.sum(0, /*keepdim=*/false, total.scalar_type()));
    }
    const FloatProducts products = float_products_in_use();
    if (found.hidden_gradient.defined()) {
      multiply(slopes, embedding_, found.hidden_gradient.narrow(0, first, rows), Into::kReplace, products);
    }
    if (!found.embedding_gradient.defined()) return;
    multiply(slopes.t(), h, found.embedding_gradient, first == 0 ? Into::kReplace : Into::kAdd, products);
  }

  // Returns what the teacher adds to the slopes of a chunk; its divergences are written.
  Pulls teacher_pulls(int64_t first, const Tensor& scores, const Found& found) const {
    const int64_t rows = scores.size(0);
    const Tensor pulls = pulls_.narrow(0, 0, rows);
    score(teacher_.hidden.narrow(0, first, rows), teacher_.embedding, teacher_.bias, pulls);
    diverge_rows(scores, pulls, how_.temperature, found.divergences.narrow(0, first, rows));
    return {.rows = pulls, .own = 1 - how_.share, .by = how_.share * how_.temperature};
  }

  at::ScalarType products_;
  Tensor hidden_, embedding_, targets_, bias_;
  TeacherRows teacher_;
  Distillation how_;
  Tensor pulls_;  // a chunk of the teacher's scores
};

// Returns the loss that the student learns from, for each row.
Tensor mixed(const Found& found, const Distillation& how) {
  const double weight = how.share * how.temperature * how.temperature;
  return found.losses * (1 - how.share) + found.divergences * weight;
}

// Computes the losses and gradients of rows that all have a target.
LossPass scored_pass(const Tensor& hidden, const Tensor& embedding, const Tensor& bias, const Tensor& targets,
                     const Teaching& teaching, const LossWants& wants, at::ScalarType products) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(at::autocast_dispatch_keyset);
  const Found found = Chunks(hidden, embedding, bias, targets, products, teaching).run(wants);
  LossPass pass;
  if (wants.hidden) pass.hidden = found.hidden_gradient.to(hidden.scalar_type());
  if (wants.embedding) pass.embedding = found.embedding_gradient.to(embedding.scalar_type());
  if (wants.bias) pass.bias = found.bias_gradient.to(bias.scalar_type());
  pass.sum = found.losses.sum();
  if (!teaching) return pass;
  pass.plain = pass.sum;
  pass.sum = mixed(found, teaching.how).sum();
  return pass;
}

class CrossEntropySum : public torch::autograd::Function<CrossEntropySum> {
 public:
  // Returns {the loss} or, with a teacher, {the loss, the plain one}. A Function takes no undefined tensors.
  static variable_list forward(AutogradContext* context, const Tensor& hidden, const Tensor& embedding,
                               const std::optional<Tensor>& bias, const Tensor& targets, const Teaching& teaching) {
    const LossWants wants{.hidden = hidden.requires_grad(),
                          .embedding = embedding.requires_grad(),
                          .bias = bias.has_value() && bias->requires_grad()};
    const LossPass pass =
        scored_pass(hidden, embedding, bias.value_or(Tensor()), targets, teaching, wants, product_type(hidden));
    if (wants.hidden) context->saved_data["hidden"] = pass.hidden;
    if (wants.embedding) context->saved_data["embedding"] = pass.embedding;
    if (wants.bias) context->saved_data["bias"] = pass.bias;
    if (!teaching) return {pass.sum};
    context->mark_non_differentiable({pass.plain});
    return {pass.sum, pass.plain};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative("the fused cross entropy");
    // The gradients are scaled in place, if at all: the embedding's gradient is the largest tensor of a training step.
    const bool as_it_is = gradients[0].is_cpu() && gradients[0].item<double>() == 1;
    const auto scaled = [&](const char* name) {
      const auto waiting = context->saved_data.find(name);
      if (waiting == context->saved_data.end()) return Tensor();
      Tensor gradient = waiting->second.toTensor();
      context->saved_data.erase(waiting);
      return as_it_is ? gradient : gradient.mul_(gradients[0]);
    };
    HS_CHECK(!context->saved_data.empty(),
             "the gradients of cross_entropy_sum are computed once; its backward pass ran before");
    return {scaled("hidden"), scaled("embedding"), scaled("bias"), Tensor(), Tensor()};
  }
};

void check(const Tensor& hidden, const Tensor& embedding, const Tensor& targets, const Tensor& bias) {
  HS_CHECK(hidden.dim() == 2 && embedding.dim() == 2 && hidden.size(1) == embedding.size(1),
           "hidden states [N, E] and an embedding [V, E] are wanted, not ", hidden.sizes(), " and ", embedding.sizes());
  HS_CHECK(targets.dim() == 1 && targets.size(0) == hidden.size(0) && targets.scalar_type() == at::kLong,
           "a target, int64, is wanted for each of ", hidden.size(0), " rows, not ", targets.sizes(), " of type ",
           targets.scalar_type());
  HS_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == embedding.size(0)), "a bias for each of ",
           embedding.size(0), " tokens is wanted, not ", bias.sizes());
}

// Returns the rows with a target, as [n]; throws where a target is no token.
Tensor scored_rows(const Tensor& targets, int64_t vocabulary, int64_t ignored) {
  const Tensor is_scored = targets != ignored;
  const Tensor wrong = (((targets < 0) | (targets >= vocabulary)) & is_scored).nonzero();
  HS_CHECK(wrong.numel() == 0, "target ", targets[wrong[0].item<int64_t>()].item<int64_t>(),
           " is no token of a vocabulary of ", vocabulary);
  return is_scored.nonzero().squeeze(1);
}

// Returns what CrossEntropySum gives for the rows that have a target.
variable_list loss_of(const Tensor& hidden, const Tensor& embedding, const Tensor& targets, int64_t ignored,
                      const Tensor& bias, Teaching teaching) {
  const std::optional<Tensor> added = bias.defined() ? std::optional(bias) : std::nullopt;
  const Tensor rows = scored_rows(targets, embedding.size(0), ignored);
  if (rows.size(0) == targets.size(0)) {
    return CrossEntropySum::apply(hidden, embedding, added, targets, teaching);
  }
  if (teaching) teaching.rows.hidden = teaching.rows.hidden.index_select(0, rows);
  return CrossEntropySum::apply(hidden.index_select(0, rows), embedding, added, targets.index_select(0, rows),
                                teaching);
}

}  // namespace

int64_t cross_entropy_chunk(int64_t N, int64_t V) {
  if (N == 0) return 1;
  const int64_t most = std::max<int64_t>(1, kMostScores / std::max<int64_t>(1, V));
  const int64_t chunks = (N + most - 1) / most;
  return (N + chunks - 1) / chunks;  // of equal size
}

LossPass cross_entropy_pass(const Tensor& hidden, const Tensor& embedding, const Tensor& targets, int64_t ignored,
                            const Tensor& bias, const LossWants& wants, std::optional<at::ScalarType> products) {
  check(hidden, embedding, targets, bias);
  const at::NoGradGuard no_grad;
  const Tensor rows = scored_rows(targets, embedding.size(0), ignored);
  const at::ScalarType type = products.value_or(product_type(hidden));
  if (rows.size(0) == targets.size(0)) return scored_pass(hidden, embedding, bias, targets, {}, wants, type);
  LossPass pass =
      scored_pass(hidden.index_select(0, rows), embedding, bias, targets.index_select(0, rows), {}, wants, type);
  if (wants.hidden) pass.hidden = at::zeros_like(hidden).index_copy_(0, rows, pass.hidden);
  return pass;
}

Tensor cross_entropy_sum(const Tensor& hidden, const Tensor& embedding, const Tensor& targets, int64_t ignored,
                         const Tensor& bias) {
  check(hidden, embedding, targets, bias);
  if (!at::GradMode::is_enabled()) return cross_entropy_rows(hidden, embedding, targets, ignored, bias).sum();
  return loss_of(hidden, embedding, targets, ignored, bias, {}).front();
}

DistilledLoss distilled_cross_entropy_sum(const Tensor& hidden, const Tensor& embedding, const Tensor& targets,
                                          int64_t ignored, const Tensor& bias, const TeacherRows& teacher,
                                          const Distillation& how) {
  HS_CHECK(how.share >= 0 && how.share <= 1 && how.temperature > 0, "a teacher's share is 0 to 1 and its temperature ",
           "above 0, not ", how.share, " and ", how.temperature);
  if (how.share == 0) {
    const Tensor sum = cross_entropy_sum(hidden, embedding, targets, ignored, bias);
    return {sum, sum.detach()};
  }
  check(hidden, embedding, targets, bias);
  check(teacher.hidden, teacher.embedding, targets, teacher.bias);
  HS_CHECK(teacher.embedding.size(0) == embedding.size(0), "the teacher has ", teacher.embedding.size(0),
           " tokens and the student ", embedding.size(0));
  const variable_list found = loss_of(hidden, embedding, targets, ignored, bias, {teacher, how});
  return {found[0], found[1]};
}

Tensor cross_entropy_rows(const Tensor& hidden, const Tensor& embedding, const Tensor& targets, int64_t ignored,
                          const Tensor& bias) {
  check(hidden, embedding, targets, bias);
  const at::NoGradGuard no_grad;
  const at::ScalarType products = product_type(hidden);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(at::autocast_dispatch_keyset);
  const Tensor rows = scored_rows(targets, embedding.size(0), ignored);
  Chunks chunks(hidden.index_select(0, rows), embedding, bias, targets.index_select(0, rows), products);
  const Tensor losses = chunks.run({}).losses;
  return at::zeros({targets.size(0)}, losses.options()).index_copy_(0, rows, losses);
}

}  // namespace headshare
