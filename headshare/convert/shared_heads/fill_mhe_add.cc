// MHE-ADD: one query and one key map, to which each head adds (docs/mathematics.md#shared-heads).
#include <ATen/ATen.h>

#include "headshare/convert/collaborative/rotary_maps.h"
#include "headshare/convert/shared_heads/added_heads.h"
#include "headshare/convert/shared_heads/conversions.h"
#include "headshare/convert/shared_heads/sharing_problem.h"

namespace headshare {
namespace {

// [F, H, d] -> [H, D].
Tensor as_constants(const Tensor& slices) {
  return slices.is_complex() ? as_pairs_of_columns(slices.squeeze(2).t()) : slices[0];
}

// x M for the mean input x: maps [n, E, D] -> [n, D]; 0 without a sample.
Tensor at_mean(const Tensor& maps, const Moments* moments) {
  if (moments == nullptr) return at::zeros({maps.size(0), maps.size(2)}, maps.options());
  return maps.transpose(1, 2).matmul(moments->mean);
}

// The shared map [F, E, d], weighed, and the heads' constants, which count from the mean input, as a projection and
// embeddings; the bias, where there is one, takes up what the embeddings have in common.
void set_side(const std::string& name, const Tensor& map, const Tensor& constants, const Moments* moments,
              SchemeFiller* filler) {
  const Tensor weights = input_weights(moments, /*about_mean=*/true, /*constant=*/false);
  const Tensor weight = as_real_maps(unweighed(weights, map.unsqueeze(1)));  // [1, E, D]
  filler->set(name + ".weight", weight.transpose(1, 2));
  if (!constants.defined()) return;
  Tensor embeddings = as_constants(constants) - at_mean(weight, moments);  // [H, D]
  if (filler->has(name + ".bias")) {
    const Tensor common = embeddings.mean(0, /*keepdim=*/true);
    filler->set(name + ".bias", common);
    embeddings = embeddings - common;
  }
  filler->set(name + "_embedding", embeddings);
}

void fill_mhe_add(const SharingProblem& problem, const SharingTask& task, SchemeFiller* filler) {
  const bool rotary = problem.target().rotary;
  const LayerProblem centred(
      problem.maps(),
      {.frequencies = rotary ? problem.width() / 2 : 0, .query_bias = true, .key_bias = rotary, .key_about_mean = true},
      task.inputs);
  const AddedHeads added = added_heads(centred.slices(), problem.target().d_model);
  const Tensor balance = balancing_factors({added.query.unsqueeze(1), added.key.unsqueeze(1)});  // [F, 1, d]
  const int64_t missing = rotary ? 0 : problem.width() - added.query.size(2);  // of heads whose keys are narrower
  const auto scaled = [&](const Tensor& x, const Tensor& factors) {
    return x.defined() ? at::constant_pad_nd(x * factors, {0, missing}) : x;
  };
  const Tensor inverse = balance.reciprocal();
  set_side("query", scaled(added.query, inverse), scaled(added.query_constant, inverse), task.inputs.query, filler);
  set_side("key", scaled(added.key, balance), scaled(added.key_constant, balance), task.inputs.key, filler);
  problem.set_values(shared_values(problem), filler);
}

}  // namespace

ConversionRecord mhe_add_conversion() { return {.scheme = "mhe_add", .fill = fill_mhe_add}; }

}  // namespace headshare
