// This is grouped-query attention (Ainslie et al., 2023): g key/value heads, each read by H / g query heads.
//   q_h = x W_Q^h, k_g = y W_K^g, v_g = y W_V^g; cache: 2 g D per token
// Ours: queries, keys and values may each have a number of heads of their own, so that heads share any of the three.
#pragma once

#include "headshare/attention/scheme.h"

namespace headshare {

// These are numbers of maps, each of which H divided by the number of heads share.
struct HeadCounts {
  int64_t query = 1, key = 1, value = 1;
};

struct GqaOptions {
  std::optional<int64_t> groups = {};  // g; default the smallest divisor of H >= max(2, H / 4)
  // These stay empty where they are not set, so that models without them are written as older programs read them.
  std::optional<int64_t> query_heads = {};  // default H
  std::optional<int64_t> key_heads = {};    // default g
  std::optional<int64_t> value_heads = {};  // default g
};

// Returns the number of groups of a resolved layer.
inline int64_t groups_of(const AttentionOptions& resolved) { return *resolved.own.get<GqaOptions>().groups; }

class Gqa : public Scheme {
 public:
  Gqa(const AttentionOptions& options, const HeadCounts& counts);

  Tensor project_queries(const Tensor& x, int64_t first) const override;  // [B, counts.query, T, D]
  Tensor merge(const Posed&, const Tensor& heads, const Tensor& live) const override;

 protected:
  Memory project_memory(const Tensor& y, int64_t first) const override;  // [B, counts.key or counts.value, S, D]
  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override;
  AttentionCost own_cost() const override;

 private:
  int64_t distinct_heads() const;  // heads that read the same three maps count once

  HeadCounts counts_;
  Linear query_, key_, value_, output_;
};

}  // namespace headshare
