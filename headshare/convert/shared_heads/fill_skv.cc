// Shared key and value: each head gets one map for both (docs/mathematics.md#shared-heads).
#include <ATen/ATen.h>

#include "headshare/convert/collaborative/rotary_maps.h"
#include "headshare/convert/shared_heads/conversions.h"
#include "headshare/convert/shared_heads/sharing_problem.h"
#include "headshare/convert/shared_heads/tied_heads.h"

namespace headshare {
namespace {

void fill_skv(const SharingProblem& problem, const SharingTask&, SchemeFiller* filler) {
  const HeadSlices scores = problem.scores();
  const HeadSlices values = problem.values();
  Tensor tied = tied_maps(scores, values, problem.width());  // [H, E or E + 1, D]
  const bool rotary = scores.key.is_complex();
  const auto slices = [rotary](const Tensor& maps) { return as_slices(maps, rotary); };
  const Tensor factors = balancing_factors({best_queries(scores, slices(tied)), slices(tied)});  // [F, H, r]
  tied = tied * (rotary ? factors.squeeze(2).t().repeat({1, 2}) : factors[0]).unsqueeze(1);
  problem.set_query(best_queries(scores, slices(tied)), filler);
  const Tensor map = problem.set_key("key_value", slices(tied), filler);
  const int64_t E = problem.target().d_model;
  const Tensor output = coefficients(tied.slice(1, 0, E), values.key[0]).matmul(problem.maps().output);  // [H, D, E]
  problem.set_output(map.slice(1, 0, E), map.size(1) > E ? map.select(1, E) : Tensor(), output, filler);
}

}  // namespace

ConversionRecord skv_conversion() { return {.scheme = "skv", .fill = fill_skv, .keys_are_values = true}; }

}  // namespace headshare
