#include "headshare/convert/shared_heads/added_side.h"

#include <ATen/ATen.h>

#include "headshare/convert/collaborative/rotary_maps.h"

namespace headshare {
namespace {

// Maps [F, H, d] to [H, D].
Tensor as_constants(const Tensor& slices) {
  return slices.is_complex() ? as_pairs_of_columns(slices.squeeze(2).t()) : slices[0];
}

// Returns x M for the mean input x: maps [n, E, D] -> [n, D]; 0 without a sample.
Tensor at_mean(const Tensor& maps, const Moments* moments) {
  if (moments == nullptr) return at::zeros({maps.size(0), maps.size(2)}, maps.options());
  return maps.transpose(1, 2).matmul(moments->mean);
}

}  // namespace

void set_added_side(const std::string& name, const std::string& constants_name, const Tensor& map,
                    const Tensor& constants, const Moments* moments, SchemeFiller* filler) {
  const Tensor weights = input_weights(moments, /*about_mean=*/true, /*constant=*/false);
  const Tensor weight = as_real_maps(unweighed(weights, map.unsqueeze(1)));  // [1, E, D]
  filler->set(name + ".weight", weight.transpose(1, 2));
  if (!constants.defined()) return;
  Tensor added = as_constants(constants) - at_mean(weight, moments);  // [H, D]
  if (filler->has(name + ".bias")) {
    const Tensor common = added.mean(0, /*keepdim=*/true);
    filler->set(name + ".bias", common);
    added = added - common;
  }
  filler->set(constants_name, added);
}

}  // namespace headshare
