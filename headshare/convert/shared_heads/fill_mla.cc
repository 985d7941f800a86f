// MLA without the norm of its latent vector: keys and values of all heads come from one vector of a token
// (docs/mathematics.md#shared-heads).
#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/attention/scheme_record.h"
#include "headshare/attention/schemes/mla.h"
#include "headshare/base/error.h"
#include "headshare/convert/shared_heads/conversions.h"
#include "headshare/convert/shared_heads/sharing_problem.h"

namespace headshare {
namespace {

// Returns the directions of a token that keys and values of all heads need, each as a share of its energy in the layer:
// [E, n].
Tensor needed_directions(const HeadSlices& scores, const HeadSlices& values) {
  const int64_t H = scores.key.size(1);
  return at::cat({key_directions(normalised(scores), H), key_directions(normalised(values), H)}, 3)[0][0];
}

int64_t full_latent_width(const AttentionOptions& layer) {
  const int64_t made = *layer.own.get<MlaOptions>().content + *layer.head_width;
  return std::min(layer.d_model, layer.heads * made);
}

// Returns the factors [R] that make dimensions of the latent vector [E, R] as long as those of the heads' maps of it,
// divided by them: both learn alike then.
Tensor balance_of(const Tensor& latent, const Tensor& keys, const Tensor& values) {
  const auto squares = [](const Tensor& maps) { return maps.square().sum(2).mean(0); };  // [R]
  const Tensor made = squares(keys) + squares(values), from = latent.square().sum(0);
  const Tensor unused = (made == 0).logical_or(from == 0), ones = at::ones_like(made);
  return (at::where(unused, ones, made) / at::where(unused, ones, from)).pow(0.25);
}

// Query and output maps stay: what a latent vector of so many dimensions leaves of keys and values cannot do better
// with others.
void fill_mla(const SharingProblem& problem, const SharingTask&, SchemeFiller* filler) {
  const HeadSlices scores = problem.scores(), values = problem.values();
  const int64_t R = *problem.target().own.get<MlaOptions>().kv_latent;
  Tensor latent = leading_directions(needed_directions(scores, values), R);  // [E, R]
  const Tensor balance = balance_of(latent, coefficients(latent, scores.key[0]), coefficients(latent, values.key[0]));
  latent = latent * balance;
  const Tensor value_maps = coefficients(latent, values.key[0]);  // [H, R, D]
  problem.set_query(scores.query, filler);
  filler->set("key.weight", coefficients(latent, scores.key[0]).transpose(1, 2));
  filler->set("value.weight", value_maps.transpose(1, 2));
  const Tensor made = problem.value_maps(latent);  // keys and values are weighed alike
  filler->set("latent.weight", made.t());
  problem.set_output(made.matmul(value_maps), Tensor(), problem.maps().output, filler);
}

// Returns the energy of maps beyond each number of the first directions, which are orthonormal.
std::vector<double> rest_beyond(const Tensor& directions, const HeadSlices& slices) {
  const Tensor needed = key_directions(slices, slices.key.size(1))[0][0];
  const Tensor kept = directions.mT().matmul(needed).square().sum(1).cumsum(0);  // [full]
  const Tensor rest = (needed.square().sum() - at::constant_pad_nd(kept, {1, 0})).clamp_min(0).contiguous();
  return {rest.data_ptr<double>(), rest.data_ptr<double>() + rest.numel()};
}

ErrorsBySize errors_by_width(const SharingProblem& problem) {
  const HeadSlices scores = problem.scores(), values = problem.values();
  const Tensor directions = leading_directions(needed_directions(scores, values), full_latent_width(problem.target()));
  return {rest_beyond(directions, scores), rest_beyond(directions, values)};
}

void set_latent_width(int64_t width, AttentionOptions* target) {
  const int64_t full = full_latent_width(*target);
  HS_CHECK(width >= 1 && width <= full, "latent width ", width, " of mla is not within 1..", full,
           ", the full rank of keys and values of all heads; write mla:", full,
           " for a layer that loses nothing, or "
           "less");
  target->own.get<MlaOptions>().kv_latent = width;
}

// Dimensions in which heads compare stay as many. What turns cannot come from a latent vector that is cached.
void prepare_latent(const AttentionOptions& source, AttentionOptions* target) {
  HS_CHECK(
      !source.rotary,
      "rotary positions turn the keys of this model, and what is turned cannot be made from the latent vector that "
      "mla keeps; convert it to lrkv, which turns keys when they are read, or train an mla model with this one as "
      "its --teacher");
  MlaOptions& own = target->own.get<MlaOptions>();
  own.content = compared_width(source);
  own.kv_norm = false;
}

std::vector<int64_t> latent_widths_worth_trying(const AttentionOptions& source) {
  std::vector<int64_t> all;
  for (const int64_t part : {2, 4, 8}) {
    if (source.d_model >= part) all.push_back(source.d_model / part);
  }
  return all;
}

}  // namespace

ConversionRecord mla_conversion() {
  return {.scheme = "mla",
          .fill = fill_mla,
          .size = ConversionSize{.name = "width",
                                 .what = "latent width",
                                 .value = [](const AttentionOptions& o) { return o.own.get<MlaOptions>().kv_latent; },
                                 .set = set_latent_width,
                                 .worth_trying = latent_widths_worth_trying},
          .layer_sizes = LayerSizes{.errors = errors_by_width,
                                    .set =
                                        [](const std::vector<int64_t>& sizes, AttentionOptions* target) {
                                          MlaOptions& own = target->own.get<MlaOptions>();
                                          own.kv_latent = std::ranges::max(sizes);
                                          own.layer_kv_latents = sizes;
                                        }},
          .prepare = prepare_latent,
          .keys_are_values = true};
}

}  // namespace headshare
