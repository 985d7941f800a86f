// This is low-rank key-value attention (LRKV, O'Neill et al., 2026; docs/mathematics.md#lrkv): heads share one full key
// map and one full value map, and each head adds a residual of rank r to both.
//   q_h = x W_Q^h, k_h = y (W_K + U_K^h B_K^h), v_h = y (W_V + U_V^h B_V^h), U [E, r], B [r, D]
//   cache: y W_K, y W_V and all y U: 2 (D + H r) per token
// The cache is the same under rotary positions: keys are kept unrotated, because the residual becomes as wide as a head
// only when it is read, and a rotation does not commute with B.
#include "headshare/attention/schemes/lrkv.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "headshare/attention/schemes.h"
#include "headshare/base/error.h"

namespace headshare {
namespace {

class LowRankKeyValue : public Scheme {
 public:
  explicit LowRankKeyValue(const AttentionOptions& options)
      : Scheme(options, KeysNormed::kWhenRead),
        query_(projection("query", H() * D())),
        key_(key_projection("key", D() + H() * r())),
        value_(memory_projection("value", D() + H() * r())),
        key_residual_(residual("key_residual")),
        value_residual_(residual("value_residual")),
        output_(output_projection()) {}

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    return rotated(normed_query(split_heads(query_->forward(x), H())), first);  // [B, H, T, D]
  }

  // Few queries read the shared head and all residuals as one wide head: each query is compared with H r numbers
  // instead of D, but no key and no value is made as wide as H heads. Products are equally many at T H = D; what
  // writing those keys and values takes moves the change to about 8 D (docs/design/067-ladders-of-head-maps.md).
  Form form_for(int64_t T, int64_t S) const override {
    return T < S && T * H() <= 8 * D() ? Form::kFewQueries : Form::kManyQueries;
  }

  Tensor merge(const Posed& posed, const Tensor& heads, const Tensor& live) const override {
    const Tensor found = posed.form == Form::kFewQueries ? values_of_own_residual(heads) : heads;
    return project_heads(output_, found, offset(), live, posed);
  }

 protected:
  // Keeps [y W | y U^0 | ... | y U^(H-1)] of keys and of values: [B, 1, S, D + H r].
  Memory project_memory(const Tensor& y, int64_t) const override {
    return {split_heads(key_->forward(y), 1), split_heads(values_of(value_, y), 1)};
  }

  HeadProblem pose(const Tensor& queries, const Memory& memory, Form form) const override {
    const bool few = form == Form::kFewQueries, keys_as_kept = few && keys_stay_as_kept();
    return {.heads = H(),
            .query = keys_as_kept ? query_of_kept(queries) : queries,
            .key = keys_as_kept ? memory[0] : rotated(normed_key(expanded(memory[0], key_residual_)), /*first=*/0),
            .value = few ? memory[1] : expanded(memory[1], value_residual_)};
  }

  AttentionCost own_cost() const override {
    const int64_t queries_and_output = 2 * E() * H() * D();
    const int64_t maps = of_memory(E() * (D() + H() * r())) + H() * r() * D();
    return {.parameters = queries_and_output + 2 * maps,
            .effective = queries_and_output + 2 * std::min(maps, H() * E() * D()),  // no more than mha's
            .cache_elements = 2 * (D() + H() * r())};
  }

 private:
  int64_t r() const { return *options().own.get<LrkvOptions>().rank; }

  // Returns the B of all heads, [H, r, D]. From N(0, 1 / r) residuals would start as large as what all heads share:
  // measured starts are in docs/design/077-where-residuals-start.md.
  Tensor residual(const std::string& name) {
    const double start = options().own.get<LrkvOptions>().start;
    return declare(name, {H(), r(), D()}, Init::normal(start / std::sqrt(static_cast<double>(r()))));
  }

  // Norms and rotations act on whole keys, which have to be made first.
  bool keys_stay_as_kept() const { return !options().rotary && !options().qk_norm; }

  // Makes the heads [B, H, S, D] of a part of the memory [B, 1, S, D + H r].
  Tensor expanded(const Tensor& kept, const Tensor& residual) const {
    const Tensor inner = split_heads(kept.slice(3, D()).squeeze(1), H());  // [B, H, S, r]
    return kept.slice(3, 0, D()) + inner.matmul(residual);
  }

  // Maps queries [B, H, T, D] to those that meet what is kept: [q | 0 .. q B^T .. 0] at the place of the head.
  Tensor query_of_kept(const Tensor& queries) const {
    const Tensor own = queries.matmul(key_residual_.transpose(1, 2));                   // [B, H, T, r]
    const Tensor place = at::eye(H(), own.options()).view({1, H(), 1, H(), 1});         // 1 at the head's own
    return at::cat({queries, (own.unsqueeze(3) * place).flatten(/*start_dim=*/3)}, 3);  // [B, H, T, D + H r]
  }

  // Maps averages of what is kept, [B, H, T, D + H r], to those of the heads' values [B, H, T, D].
  Tensor values_of_own_residual(const Tensor& averages) const {
    const Tensor inner = averages.slice(3, D()).unflatten(3, {H(), r()});  // [B, H, T, H, r]
    const Tensor own = inner.diagonal(0, 1, 3).permute({0, 3, 1, 2});      // [B, H, T, r]
    return averages.slice(3, 0, D()) + own.matmul(value_residual_);
  }

  // Returns what the value's biases add to the heads, [H, D]; undefined where they are in the values.
  Tensor offset() const {
    if (values_have_bias(options()) || !value_->bias.defined()) return {};
    return expanded(value_->bias.view({1, 1, 1, -1}), value_residual_).view({H(), D()});
  }

  Linear query_, key_, value_;            // the rows of key and value are W, then the U of each head
  Tensor key_residual_, value_residual_;  // B_K, B_V: [H, r, D]
  Linear output_;
};

}  // namespace

namespace {
namespace lrkv {

Fields fields(LrkvOptions& o) {
  return {
      field("kv-rank", &o.rank,
            "rank r of what each head of lrkv adds to the shared key map and to the shared value map; auto: a quarter "
            "of the head width",
            {.min = 1, .max = 1 << 16, .since = 14}),
      field("kv-residual-start", &o.start,
            "residuals of lrkv start so many times as large as what all heads share; 0: as mqa",
            {.min = 0, .max = 10, .since = 17})};
}

void set_defaults(AttentionOptions* options) {
  std::optional<int64_t>& rank = options->own.get<LrkvOptions>().rank;
  if (!rank) rank = std::max<int64_t>(1, *options->head_width / 4);
}

std::string why_not(const AttentionOptions& o) {
  const int64_t rank = *o.own.get<LrkvOptions>().rank, full = std::min(*o.head_width, o.d_model);
  if (rank <= full) return "";
  return join_text("kv-rank must be at most ", full, ", the full rank of maps from d-model ", o.d_model,
                   " to head-width ", *o.head_width, ", not ", rank,
                   "; choose a lower --kv-rank, or --scheme mha, whose heads share no maps");
}

std::string sizes(const AttentionOptions& o) { return join_text("rank ", *o.own.get<LrkvOptions>().rank); }

}  // namespace lrkv
}  // namespace

SchemeRecord lrkv_scheme() {
  return {.name = "lrkv",
          .sentence = "heads share full key and value maps, and each adds a residual of low rank",
          .paper = "O'Neill et al., 2026",
          .make = make_as<LowRankKeyValue>,
          .options = scheme_options<LrkvOptions>(lrkv::fields),
          .set_defaults = lrkv::set_defaults,
          .why_not = lrkv::why_not,
          .sizes = lrkv::sizes,
          .since = 14};
}

}  // namespace headshare
