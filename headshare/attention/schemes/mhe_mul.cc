// This is multiple-head-embeddings attention by multiplication (MHE-MUL, Xue and Aletras, 2023;
// docs/mathematics.md#mhe_mul).
//   q_h = q * (1 + eQ_h), k_h = k * (1 + eK_h), v_h = v * (1 + eV_h); cache: shared k, v: 2 D per token
// The "1 +" is our reading (`MheMulOptions::offset`). Without rotary positions both factors of the scores
// fold into the query, m_h = (1 + eQ_h) * (1 + eK_h), and 1 + eV_h scales the averaged values.
#include <ATen/ATen.h>

#include "headshare/attention/schemes.h"
#include "headshare/attention/schemes/single_head.h"

namespace headshare {
namespace {

class MheMul : public SingleHead {
 public:
  explicit MheMul(const AttentionOptions& options)
      : SingleHead(options),
        offset_(options.own.get<MheMulOptions>().offset),
        query_embedding_(head_embedding("query_embedding", Role::kLearned)),
        key_embedding_(head_embedding("key_embedding", Role::kLearned)),
        value_embedding_(head_embedding("value_embedding", Role::kLearned)) {}

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    const Tensor query = normed_query(split_heads(query_->forward(x), 1));  // [B, 1, T, D]
    if (options().rotary) return rotated(query * factor(query_embedding_), first);
    return query * (factor(query_embedding_) * factor(key_embedding_));  // [B, H, T, D]
  }

  Tensor merge(const Posed& posed, const Tensor& heads, const Tensor& live) const override {
    const Tensor scale = factor(value_embedding_);  // [H, 1, D]
    Tensor bias = value_offset(value_);
    if (bias.defined()) bias = bias * scale.squeeze(1);
    return project_heads(output_, heads * scale, bias, live, posed);
  }

 protected:
  Memory project_memory(const Tensor& y, int64_t) const override { return shared_memory(y); }

  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override {
    Tensor keys = memory[0];
    if (options().rotary) keys = rotated(keys * factor(key_embedding_), /*first=*/0);  // [B, H, S, D]
    return {.heads = H(), .query = queries, .key = keys, .value = memory[1]};
  }

  int64_t effective_norm_weights(int64_t) const override { return 0; }  // eQ and eK absorb them

  AttentionCost own_cost() const override {
    // O absorbs eV, and eQ and eK count as their product. Rotary positions mix the two dimensions of a
    // pair in between: then only a factor per pair is common to both.
    const int64_t mixing = H() * (D() + turned_width() / 2);
    return {.parameters = shared_parameters() + 3 * H() * D(),
            .effective = shared_parameters() + mixing,
            .cache_elements = 2 * D()};
  }

 private:
  Tensor factor(const Tensor& embedding) const { return (embedding + offset_).unsqueeze(1); }

  double offset_;
  Tensor query_embedding_, key_embedding_, value_embedding_;  // [H, D]
};

}  // namespace

namespace {
namespace mhe_mul {

// Sets the deviation that was measured (docs/design/021-where-head-embeddings-start.md).
void set_defaults(AttentionOptions* options) {
  std::optional<double>& deviation = options->own.get<MheOptions>().deviation;
  if (!deviation) deviation = 0.5;
}

Fields fields(MheMulOptions& o) {
  return {
      field("mhe-mul-offset", &o.offset, "mhe_mul multiplies by (offset + embedding)", {.min = 0, .max = 1}),
  };
}

}  // namespace mhe_mul
}  // namespace

SchemeRecord mhe_mul_scheme() {
  SchemeOptions options = scheme_options<MheMulOptions>(mhe_mul::fields);
  options.reset = [](AttentionOptions*) {};  // a layer that takes another's place counts embeddings from where it does
  return {.name = "mhe_mul",
          .sentence = "all heads share one head's maps, and each multiplies by an embedding of its own",
          .paper = "Xue and Aletras, 2023",
          .make = make_as<MheMul>,
          .options = options,
          .reads = {"mhe-deviation"},
          .set_defaults = mhe_mul::set_defaults};
}

}  // namespace headshare
