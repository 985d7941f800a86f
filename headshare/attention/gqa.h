// This is grouped-query attention (Ainslie et al., 2023): g key/value heads, each read by H / g query heads.
//   q_h = x W_Q^h, k_g = y W_K^g, v_g = y W_V^g; cache: 2 g D per token
#pragma once

#include "headshare/attention/scheme.h"

namespace headshare {

struct GqaOptions {
  std::optional<int64_t> groups = {};  // g; default the smallest divisor of H >= max(2, H / 4)
};

// Returns the number of groups of a resolved layer.
inline int64_t groups_of(const AttentionOptions& resolved) { return *resolved.own.get<GqaOptions>().groups; }

class Gqa : public Scheme {
 public:
  Gqa(const AttentionOptions& options, int64_t groups);

  Tensor project_queries(const Tensor& x, int64_t first) const override;  // [B, H, T, D]
  Tensor merge(const Posed&, const Tensor& heads, const Tensor& live) const override;

 protected:
  Memory project_memory(const Tensor& y, int64_t first) const override;  // k, v: [B, g, S, D]
  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override;
  AttentionCost own_cost() const override;

 private:
  int64_t groups_;
  Linear query_, key_, value_, output_;
};

}  // namespace headshare
