// MHE-MUL: one query and one key map, which each head multiplies (docs/mathematics.md#shared-heads). Values that each
// head multiplies are what output maps take up.
#include <ATen/ATen.h>

#include "headshare/attention/schemes/mhe_options.h"
#include "headshare/convert/collaborative/rotary_maps.h"
#include "headshare/convert/shared_heads/conversions.h"
#include "headshare/convert/shared_heads/multiplied_heads.h"
#include "headshare/convert/shared_heads/sharing_problem.h"

namespace headshare {
namespace {

struct Multiplied {
  SharedMaps maps;                    // [F, 1, E, r]
  Tensor query_factors, key_factors;  // [H, D]
};

// Without rotary positions only the product of a head's factors counts: a decomposition whose mixing they are.
Multiplied decomposed(const HeadSlices& scores, int64_t width, const SharingTask& task) {
  const SharedFactors f = widened(decompose(scores, width, task.decomposition, task.progress).factors, width);
  // Factors of mean square 1, mostly positive: what a new layer has.
  Tensor size = f.mixing.square().mean(1, /*keepdim=*/true).sqrt();  // [1, 1, r]
  size = at::where(size == 0, at::ones_like(size), size);
  size = at::where(f.mixing.sum(1, /*keepdim=*/true) < 0, -size, size);
  const Tensor factors = (f.mixing / size)[0];
  return {{(f.query * size).unsqueeze(1), f.key.unsqueeze(1)}, factors, at::ones_like(factors)};
}

Multiplied turned(const HeadSlices& scores) {
  const MultipliedHeads heads = multiplied_heads(scores);
  const auto map = [](const Tensor& x) { return x.unsqueeze(1).unsqueeze(3); };
  const auto factors = [](const Tensor& x) { return as_pairs_of_columns(x.t()); };
  return {{map(heads.query), map(heads.key)}, factors(heads.query_factors), factors(heads.key_factors)};
}

void fill_mhe_mul(const SharingProblem& problem, const SharingTask& task, SchemeFiller* filler) {
  const HeadSlices scores = problem.scores();
  const Multiplied heads = problem.target().rotary ? turned(scores) : decomposed(scores, problem.width(), task);
  const Tensor balance = balancing_factors(heads.maps).unsqueeze(2);
  problem.set_query(heads.maps.query / balance, filler);
  problem.set_key("key", heads.maps.key * balance, filler);
  const double offset = problem.target().own.get<MheMulOptions>().offset;
  filler->set("query_embedding", heads.query_factors - offset);
  filler->set("key_embedding", heads.key_factors - offset);
  filler->set("value_embedding", at::ones_like(heads.key_factors) - offset);
  problem.set_values(shared_values(problem), filler);
}

}  // namespace

ConversionRecord mhe_mul_conversion() { return {.scheme = "mhe_mul", .fill = fill_mhe_mul, .iterates = true}; }

}  // namespace headshare
