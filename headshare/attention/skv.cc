// This scheme shares key and value: one map serves a head as key and as value (docs/mathematics.md#skv).
//   q_h = x W_Q^h, k_h = v_h = y W_KV^h; cache: k = v stored once: H D per token
// With `shared_qk` queries and keys share a map instead: q_h = x W_QK^h, k_h = y W_QK^h; cache 2 H D.
#include <ATen/ATen.h>

#include "headshare/attention/schemes.h"

namespace headshare {
namespace {

class SharedKeyValue : public Scheme {
 public:
  explicit SharedKeyValue(const AttentionOptions& options)
      : Scheme(options),
        query_(projection("query", H() * D())),
        key_value_(projection("key_value", H() * D())),
        output_(output_projection()) {}

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    return rotated(normed_query(split_heads(query_->forward(x), H())), first);  // [B, H, T, D]
  }

  Tensor merge(const Posed& posed, const Tensor& heads, const Tensor& live) const override {
    return project_heads(output_, heads, value_offset(key_value_), live, posed);
  }

 protected:
  // The values must stay as they are, so keys are normed and turned when they are read.
  Memory project_memory(const Tensor& y, int64_t) const override {
    return {split_heads(values_of(key_value_, y), H())};  // [B, H, S, D]
  }

  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override {
    Tensor keys = memory[0];
    const Tensor bias = value_offset(key_value_);
    if (key_bias_matters(options()) && bias.defined()) keys = keys + bias.unsqueeze(1);
    keys = rotated(normed_key(keys), /*first=*/0);
    return {.heads = H(), .query = queries, .key = keys, .value = memory[0]};
  }

  AttentionCost own_cost() const override {
    const int64_t parameters = 3 * E() * H() * D();
    return {.parameters = parameters, .effective = parameters, .cache_elements = H() * D()};
  }

 private:
  Linear query_, key_value_, output_;
};

class SharedQueryKey : public Scheme {
 public:
  explicit SharedQueryKey(const AttentionOptions& options)
      : Scheme(options),
        query_key_(projection("query_key", H() * D())),
        value_(projection("value", H() * D())),
        output_(output_projection()) {}

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    return rotated(normed_query(split_heads(query_key_->forward(x), H())), first);  // [B, H, T, D]
  }

  Tensor merge(const Posed& posed, const Tensor& heads, const Tensor& live) const override {
    return project_heads(output_, heads, value_offset(value_), live, posed);
  }

 protected:
  Memory project_memory(const Tensor& y, int64_t first) const override {
    return {rotated(normed_key(split_heads(query_key_->forward(y), H())), first),
            split_heads(values_of(value_, y), H())};
  }

  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override {
    return {.heads = H(), .query = queries, .key = memory[0], .value = memory[1]};
  }

  AttentionCost own_cost() const override {
    const int64_t parameters = 3 * E() * H() * D();
    return {.parameters = parameters, .effective = parameters, .cache_elements = 2 * H() * D()};
  }

 private:
  Linear query_key_, value_, output_;
};

}  // namespace

namespace {

struct SkvOptions {
  bool shared_qk = false;  // share queries and keys instead of keys and values
};

namespace skv {

Fields fields(SkvOptions& o) {
  return {field("shared-qk", &o.shared_qk, "skv shares queries and keys instead of keys and values")};
}

std::shared_ptr<Scheme> make(const AttentionOptions& options) {
  if (options.own.get<SkvOptions>().shared_qk) return std::make_shared<SharedQueryKey>(options);
  return std::make_shared<SharedKeyValue>(options);
}

}  // namespace skv
}  // namespace

SchemeRecord skv_scheme() {
  return {.name = "skv",
          .sentence = "a head's keys are its values",
          .paper = "Xue and Aletras, 2023",
          .make = skv::make,
          .options = scheme_options<SkvOptions>(skv::fields)};
}

}  // namespace headshare
