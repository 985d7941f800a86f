// LRKV: one key and one value map, to which each head adds one of low rank (docs/mathematics.md#shared-heads).
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "headshare/attention/schemes/lrkv.h"
#include "headshare/base/error.h"
#include "headshare/convert/collaborative/rotary_maps.h"
#include "headshare/convert/shared_heads/conversions.h"
#include "headshare/convert/shared_heads/residual_heads.h"
#include "headshare/convert/shared_heads/sharing_problem.h"

namespace headshare {
namespace {

// One side of products, and what the other side becomes: query maps of keys, output maps of values.
struct ResidualSide {
  ResidualHeads maps;
  Tensor other;  // [F, H, E, r]
};

// The same heads, with dimensions of U_h as long as those of B_h: both learn alike then. Dimensions of 0 stay.
ResidualHeads with_even_residuals(ResidualHeads maps) {
  const Tensor inner = maps.inner.square().sum(1), outer = maps.outer.square().sum(2);  // [H, r]
  const Tensor unused = (inner == 0).logical_or(outer == 0), ones = at::ones_like(inner);
  const Tensor factors = (at::where(unused, ones, outer) / at::where(unused, ones, inner)).pow(0.25);
  return {maps.shared, maps.inner * factors.unsqueeze(1), maps.outer / factors.unsqueeze(2)};
}

ResidualSide residual_side(const HeadSlices& slices, const SharingProblem& problem) {
  const bool turning = slices.key.is_complex();
  const int64_t rank = *problem.target().own.get<LrkvOptions>().rank;
  ResidualHeads maps = residual_heads(slices, problem.width(), rank);
  const Tensor keys = as_slices(maps.heads(), turning);
  const Tensor as_one = keys.flatten(1, 2).unsqueeze(1) / std::sqrt(static_cast<double>(keys.size(1)));
  Tensor balance = balancing_factors({best_queries(slices, keys), as_one}).flatten();  // [F r]
  if (turning) balance = balance.repeat({2});
  maps = with_even_residuals({maps.shared * balance, maps.inner, maps.outer * balance});
  return {maps, best_queries(slices, as_slices(maps.heads(), turning))};
}

// Returns W and all U side by side: [1, E, D + H r].
Tensor columns_of(const ResidualHeads& maps) {
  return at::cat({maps.shared, maps.inner.transpose(0, 1).flatten(1)}, 1).unsqueeze(0);
}

void fill_lrkv(const SharingProblem& problem, const SharingTask&, SchemeFiller* filler) {
  const ResidualSide scores = residual_side(problem.scores(), problem);
  problem.set_query(scores.other, filler);
  problem.set_key("key", columns_of(scores.maps).unsqueeze(0), filler);
  filler->set("key_residual", scores.maps.outer);
  const ResidualSide values = residual_side(problem.values(), problem);
  filler->set("value.weight", problem.value_maps(columns_of(values.maps)).transpose(1, 2));
  filler->set("value_residual", values.maps.outer);
  problem.set_output(problem.value_maps(values.maps.heads()), Tensor(), values.other[0].transpose(1, 2), filler);
}

int64_t full_residual_rank(const AttentionOptions& layer) { return std::min(*layer.head_width, layer.d_model); }

void set_residual_rank(int64_t rank, AttentionOptions* target) {
  const int64_t full = full_residual_rank(*target);
  HS_CHECK(rank >= 1 && rank <= full, "rank ", rank, " of lrkv is not within 1..", full,
           ", the full rank of what a head adds to keys ", *target->head_width, " wide; write lrkv:", full,
           " for a layer that loses nothing, or less");
  target->own.get<LrkvOptions>().rank = rank;
}

std::vector<int64_t> residual_ranks_worth_trying(const AttentionOptions& source) {
  std::vector<int64_t> all;
  for (int64_t rank = full_residual_rank(source) / 2; rank >= 1; rank /= 2) all.push_back(rank);
  return all;
}

}  // namespace

ConversionRecord lrkv_conversion() {
  return {.scheme = "lrkv",
          .fill = fill_lrkv,
          .size = ConversionSize{.name = "rank",
                                 .what = "rank",
                                 .value = [](const AttentionOptions& o) { return o.own.get<LrkvOptions>().rank; },
                                 .set = set_residual_rank,
                                 .worth_trying = residual_ranks_worth_trying}};
}

}  // namespace headshare
