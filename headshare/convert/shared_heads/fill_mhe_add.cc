// MHE-ADD: one query and one key map, to which each head adds (docs/mathematics.md#shared-heads).
#include <ATen/ATen.h>

#include <string>

#include "headshare/convert/shared_heads/added_heads.h"
#include "headshare/convert/shared_heads/added_side.h"
#include "headshare/convert/shared_heads/conversions.h"
#include "headshare/convert/shared_heads/sharing_problem.h"

namespace headshare {
namespace {

void fill_mhe_add(const SharingProblem& problem, const SharingTask& task, SchemeFiller* filler) {
  const bool rotary = problem.target().rotary;
  const LayerProblem centred(
      problem.maps(),
      {.frequencies = rotary ? problem.width() / 2 : 0, .query_bias = true, .key_bias = rotary, .key_about_mean = true},
      task.inputs);
  const AddedHeads added = added_heads(centred.slices(), problem.target().d_model, problem.target().d_model);
  const Tensor balance = balancing_factors({added.query.unsqueeze(1), added.key.unsqueeze(1)});  // [F, 1, d]
  const int64_t missing = rotary ? 0 : problem.width() - added.query.size(2);  // of heads whose keys are narrower
  const auto scaled = [&](const Tensor& x, const Tensor& factors) {
    return x.defined() ? at::constant_pad_nd(x * factors, {0, missing}) : x;
  };
  const Tensor inverse = balance.reciprocal();
  const auto set = [&](const std::string& name, const Tensor& map, const Tensor& constants, const Tensor& factors,
                       const Moments* moments) {
    set_added_side(name, name + "_embedding", scaled(map, factors), scaled(constants, factors), moments, filler);
  };
  set("query", added.query, added.query_constant, inverse, task.inputs.query);
  set("key", added.key, added.key_constant, balance, task.inputs.key);
  problem.set_values(shared_values(problem), filler);
}

}  // namespace

ConversionRecord mhe_add_conversion() { return {.scheme = "mhe_add", .fill = fill_mhe_add}; }

}  // namespace headshare
