// This is a scheme for tests that needs all that a scheme may need of the core: one part of the memory serves as keys
// and values, the problem has two forms, and a part of each vector turns. It is DeepSeek's multi-head latent attention
// in small (DeepSeek-AI, 2024), without its compressed queries.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "headshare/attention/schemes.h"

namespace headshare {

inline constexpr int64_t kLatentWidth = 6;  // of c
inline constexpr int64_t kTurnedWidth = 2;  // of the part of a key that all heads share

// A latent scheme takes one of these forms, or both.
enum class LatentForms { kBoth, kManyQueries, kFewQueries };

// The scheme's formula is
//   q_h = x W_Q^h [D + turned wide], [c | t] = y W_L, k_h = [c W_K^h | t], v_h = c W_V^h; cache: c, t
// The last dimensions turn: of q_h, and t of the memory. In the form for few queries W_K^h is applied to the queries
// and W_V^h to what comes out; one head of keys, [c | t], and values, c, is left: the cache itself.
class Latent : public Scheme {
 public:
  Latent(const AttentionOptions& options, LatentForms forms)
      : Scheme(options),
        forms_(forms),
        query_(projection("query", H() * (D() + kTurnedWidth))),
        latent_(projection("latent", kLatentWidth + kTurnedWidth)),
        key_(declare("key", {H(), D(), kLatentWidth}, Init::normal(0.5), Decay::kYes)),
        value_(declare("value", {H(), D(), kLatentWidth}, Init::normal(0.5), Decay::kYes)),
        output_(output_projection()) {}

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    return rotated(split_heads(query_->forward(x), H()), first);  // [B, H, T, D + turned]
  }

  Form form_for(int64_t T, int64_t S) const override {
    if (forms_ == LatentForms::kManyQueries) return Form::kManyQueries;
    return forms_ == LatentForms::kFewQueries || 2 * T < S ? Form::kFewQueries : Form::kManyQueries;
  }

  Tensor merge(const Posed& posed, const Tensor& heads, const Tensor&) const override {
    if (posed.form == Form::kManyQueries) return output_->forward(join_heads(heads));
    return output_->forward(join_heads(heads.matmul(value_.transpose(1, 2))));  // [B, H, T, latent] -> [B, H, T, D]
  }

 protected:
  Memory project_memory(const Tensor& y, int64_t first) const override {
    return {rotated(split_heads(latent_->forward(y), 1), first)};  // [B, 1, S, latent + turned]
  }

  HeadProblem pose(const Tensor& queries, const Memory& memory, Form form) const override {
    const Tensor& kept = memory[0];
    const Tensor c = kept.slice(3, 0, kLatentWidth);
    if (form == Form::kFewQueries) {
      const Tensor query = at::cat({queries.slice(3, 0, D()).matmul(key_), queries.slice(3, D())}, 3);
      return {.heads = H(), .query = query, .key = kept, .value = c};
    }
    const Tensor turned = kept.slice(3, kLatentWidth).expand({kept.size(0), H(), kept.size(2), kTurnedWidth});
    return {.heads = H(),
            .query = queries,
            .key = at::cat({c.matmul(key_.transpose(1, 2)), turned}, 3),
            .value = c.matmul(value_.transpose(1, 2))};
  }

  AttentionCost own_cost() const override {
    const int64_t kept = kLatentWidth + kTurnedWidth;
    const int64_t parameters =
        E() * (H() * (D() + kTurnedWidth) + kept) + 2 * H() * D() * kLatentWidth + E() * H() * D();
    return {.parameters = parameters, .effective = parameters, .cache_elements = kept};
  }

 private:
  LatentForms forms_;
  Linear query_, latent_;
  Tensor key_, value_;  // W_K, W_V: [H, D, latent]
  Linear output_;
};

namespace latent_records {

template <LatentForms kForms>
std::shared_ptr<Scheme> make(const AttentionOptions& resolved) {
  return std::make_shared<Latent>(resolved, kForms);
}

inline int64_t compared(const AttentionOptions& resolved) { return *resolved.head_width + kTurnedWidth; }
inline int64_t turned(const AttentionOptions&) { return kTurnedWidth; }

inline std::string why_not(const AttentionOptions& resolved) {
  return resolved.qk_norm ? "the latent scheme has no norms of queries and keys" : "";
}

}  // namespace latent_records

template <LatentForms kForms = LatentForms::kBoth>
SchemeRecord latent_scheme(const std::string& name = "latent") {
  return {.name = name,
          .sentence = "all heads read one latent vector of a token",
          .paper = "DeepSeek-AI, 2024",
          .make = latent_records::make<kForms>,
          .why_not = latent_records::why_not,
          .compared_width = latent_records::compared,
          .rotated_width = latent_records::turned};
}

}  // namespace headshare
