// This is multi-head attention (Vaswani et al., 2017): every head has its own queries, keys and values. With a narrower
// key width it is the "concatenated" baseline of the collaborative paper.
//   q_h = x W_Q^h, k_h = y W_K^h [R / H wide], v_h = y W_V^h [D wide]; cache: k, v: R + H D per token
#pragma once

#include "headshare/attention/scheme.h"

namespace headshare {

class Mha : public Scheme {
 public:
  explicit Mha(const AttentionOptions& options);

  Tensor project_queries(const Tensor& x, int64_t first) const override;  // [B, H, T, R / H]
  Tensor merge(const Posed&, const Tensor& heads, const Tensor& live) const override;

 protected:
  Memory project_memory(const Tensor& y, int64_t first) const override;  // k [B, H, S, R / H], v [B, H, S, D]
  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override;
  AttentionCost own_cost() const override;

  int64_t R() const { return *options().key_width; }

  Linear query_, key_, value_, output_;
};

// This is SchemeRecord::set_defaults of the schemes with these weights.
void set_mha_defaults(AttentionOptions* options);
std::string why_not_mha(const AttentionOptions& resolved);
int64_t mha_compared_width(const AttentionOptions& resolved);

}  // namespace headshare
