// The two passes of the factorised kernel share these functions.
#pragma once

#include <limits>

#include "headshare/kernels/attention_plan.h"
#include "headshare/kernels/factorised.h"
#include "headshare/kernels/scratch.h"

namespace headshare::kernels {

// Computes what head h adds to the exponents (to the base 2) of the keys [first, first + keys), measured from the key
// `origin` where ALiBi is concerned; hidden keys get minus infinity.
inline void key_exponents(const FactorisedSizes& s, const AttentionRule& rule, int64_t b, int64_t h, int64_t first,
                          int64_t keys, int64_t origin, float* z) {
  const float slope = rule.alibi_slopes == nullptr ? 0 : rule.alibi_slopes[h] * kLog2e;
  const float scale = rule.scale * kLog2e;
  const float* bias = rule.key_bias == nullptr ? nullptr : rule.key_bias + (b * s.H + h) * s.S + first;
  for (int64_t j = 0; j < keys; ++j) {
    z[j] = (bias == nullptr ? 0 : bias[j] * scale) + slope * static_cast<float>(first + j - origin);
  }
  if (rule.visible_keys == nullptr) return;
  for (int64_t j = 0; j < keys; ++j) {
    if (!rule.visible_keys[b * s.S + first + j]) z[j] = -std::numeric_limits<float>::infinity();
  }
}

// Returns the rule of P0: neither biases nor distances.
inline AttentionRule shared_rule(const AttentionRule& rule) {
  AttentionRule shared = rule;
  shared.key_bias = nullptr;
  shared.alibi_slopes = nullptr;
  return shared;
}

// Returns the (head, block) pairs of each sentence that were left, an item a sentence.
inline std::vector<WorkItem> left_by_head(const FactorisedSizes& s, const bool* by_head) {
  std::vector<WorkItem> items;
  for (int64_t b = 0; b < s.B; ++b) {
    WorkItem item{b, 0, s.H, 0, s.T, {}};
    for (int64_t h = 0; h < s.H; ++h) {
      for (int64_t block = 0; block < s.blocks(); ++block) {
        if (!by_head[(b * s.H + h) * s.blocks() + block]) continue;
        const int64_t first = block * kTileQueries;
        item.blocks.push_back({h, first, std::min(kTileQueries, s.T - first)});
      }
    }
    if (!item.blocks.empty()) items.push_back(std::move(item));
  }
  return items;
}

}  // namespace headshare::kernels
