// This is multiple-head-embeddings attention by addition (MHE-ADD, Xue and Aletras, 2023; docs/mathematics.md#mhe_add).
//   q_h = q + eQ_h, k_h = k + eK_h, v_h = v + eV_h; cache: shared k, v: 2 D per token
// Without rotary positions eK adds the same to a whole row of scores, which softmax deletes, and eQ
// adds eQ_h . k_j: one shared score matrix plus a bias per (head, key). The rows of softmax sum to
// one, so eV is added after averaging.
#include <ATen/ATen.h>

#include "headshare/attention/schemes.h"
#include "headshare/attention/single_head.h"

namespace headshare {
namespace {

class MheAdd : public SingleHead {
 public:
  explicit MheAdd(const AttentionOptions& options)
      : SingleHead(options),
        query_embedding_(head_embedding("query_embedding", Role::kLearned)),
        key_embedding_(head_embedding("key_embedding", options.rotary ? Role::kLearned : Role::kInert)),
        value_embedding_(head_embedding("value_embedding", Role::kLearned)) {}

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    const Tensor query = normed_query(split_heads(query_->forward(x), 1));  // [B, 1, T, D]
    return options().rotary ? rotated(query + query_embedding_.unsqueeze(1), first) : query;
  }

  Tensor merge(const Posed&, const Tensor& heads, const Tensor& live) const override {
    const Tensor offset = value_->bias.defined() ? value_embedding_ + value_->bias : value_embedding_;  // [H, D]
    return output_->forward(join_heads(add_value_offset(heads, offset, live)));
  }

 protected:
  Memory project_memory(const Tensor& y, int64_t) const override { return shared_memory(y); }

  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override {
    if (!options().rotary) {
      return {.heads = H(), .query = queries, .key = memory[0], .value = memory[1], .query_shift = query_embedding_};
    }
    const Tensor keys = rotated(memory[0] + key_embedding_.unsqueeze(1), /*first=*/0);  // [B, H, S, D]
    return {.heads = H(), .query = queries, .key = keys, .value = memory[1]};
  }

  AttentionCost own_cost() const override {
    return {.parameters = shared_parameters() + 3 * H() * D(),
            .effective = shared_parameters() + effective_embeddings(),
            .cache_elements = 2 * D()};
  }

 private:
  // eV is an output bias. eQ is absorbed by a content bias, u_h = W_K eQ_h, and eK by softmax, unless
  // rotary positions come in between.
  int64_t effective_embeddings() const {
    if (options().rotary) return 2 * H() * D();
    return options().content_bias ? 0 : H() * D();
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
