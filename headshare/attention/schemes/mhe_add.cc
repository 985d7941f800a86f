// This is multiple-head-embeddings attention by addition (MHE-ADD, Xue and Aletras, 2023; docs/mathematics.md#mhe_add).
//   q_h = q + eQ_h, k_h = k + eK_h, v_h = v + eV_h; cache: shared k, v: 2 D per token
// Without rotary positions eK adds the same to a whole row of scores, which softmax deletes, and eQ
// adds eQ_h . k_j: one shared score matrix plus a bias per (head, key). The rows of softmax sum to
// one, so eV is added after averaging. A sink does not share what is the same for a whole row: beside one, each head
// has its own query, key and value.
#include <ATen/ATen.h>

#include "headshare/attention/schemes.h"
#include "headshare/attention/schemes/single_head.h"

namespace headshare {
namespace {

class MheAdd : public SingleHead {
 public:
  explicit MheAdd(const AttentionOptions& options)
      : SingleHead(options),
        query_embedding_(head_embedding("query_embedding", Role::kLearned)),
        key_embedding_(
            head_embedding("key_embedding", options.rotary || options.sinks ? Role::kLearned : Role::kInert)),
        value_embedding_(head_embedding("value_embedding", Role::kLearned)) {}

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    const Tensor query = normed_query(split_heads(query_->forward(x), 1));  // [B, 1, T, D]
    return is_folded() ? query : rotated(query + query_embedding_.unsqueeze(1), first);
  }

  Tensor merge(const Posed& posed, const Tensor& heads, const Tensor& live) const override {
    Tensor offset;  // [H, D]
    if (!options().sinks) {
      const Tensor bias = value_offset(value_);
      offset = bias.defined() ? value_embedding_ + bias : value_embedding_;
    }
    return project_heads(output_, heads, offset, live, posed);
  }

 protected:
  Memory project_memory(const Tensor& y, int64_t) const override { return shared_memory(y); }

  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override {
    if (is_folded()) {
      return {.heads = H(), .query = queries, .key = memory[0], .value = memory[1], .query_shift = query_embedding_};
    }
    const Tensor keys = rotated(memory[0] + key_embedding_.unsqueeze(1), /*first=*/0);  // [B, H, S, D]
    const Tensor values = options().sinks ? memory[1] + value_embedding_.unsqueeze(1) : memory[1];
    return {.heads = H(), .query = queries, .key = keys, .value = values};
  }

  AttentionCost own_cost() const override {
    return {.parameters = shared_parameters() + 3 * H() * D(),
            .effective = shared_parameters() + effective_embeddings(),
            .cache_elements = 2 * D()};
  }

 private:
  // Tells whether one shared score matrix and a bias per (head, key) are what the heads compare.
  bool is_folded() const { return !options().rotary && !options().sinks; }

  // eV is an output bias, unless a gate or a sink weighs it. eQ is absorbed by the layer's content bias, u_h = W_K
  // eQ_h, and eK by softmax, unless rotary positions turn these dimensions in between, or for eK a sink.
  int64_t effective_embeddings() const {
    const int64_t query = has_content_bias() ? turned_width() : D();
    const int64_t key = options().sinks ? D() : turned_width();
    const int64_t value = options().sinks || is_gated() ? D() : 0;
    return H() * (query + key + value);
  }

  Tensor query_embedding_, key_embedding_, value_embedding_;  // [H, D]
};

}  // namespace

namespace {
namespace mhe_add {

Fields fields(MheOptions& o) {
  return {field("mhe-deviation", &o.deviation,
                "head embeddings start from N(0, this squared); auto: 0.02 for mhe_add, 0.5 for mhe_mul",
                {.min = 0, .max = 10})};
}

// Fills in the deviation that was measured (docs/design/021-where-head-embeddings-start.md). mhe_mul has set its own by
// then.
void fill_in(AttentionOptions* options) {
  std::optional<double>& deviation = options->own.get<MheOptions>().deviation;
  if (!deviation) deviation = 0.02;
}

}  // namespace mhe_add
}  // namespace

SchemeRecord mhe_add_scheme() {
  SchemeOptions options = scheme_options<MheOptions>(mhe_add::fields);
  options.fill_in = mhe_add::fill_in;
  return {.name = "mhe_add",
          .sentence = "all heads share one head's maps, and each adds an embedding of its own",
          .paper = "Xue and Aletras, 2023",
          .make = make_as<MheAdd>,
          .options = options};
}

}  // namespace headshare
