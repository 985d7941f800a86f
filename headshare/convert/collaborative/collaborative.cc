#include "headshare/convert/collaborative/collaborative.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/attention/scheme_record.h"
#include "headshare/attention/schemes/collaborative.h"
#include "headshare/base/error.h"
#include "headshare/convert/collaborative/fill_scheme.h"

namespace headshare {
namespace {

bool not_zero(const Tensor& x) { return x.ne(0).any().item<bool>(); }

const std::optional<int64_t>& rotary_width_of(const AttentionOptions& options) {
  return options.own.get<CollaborativeOptions>().rotary_width;
}

// The width after which the frequencies of a head repeat.
int64_t period_of(const AttentionOptions& options) {
  return rotary_width_of(options).value_or(compared_width(options));
}

// Rotary positions turn biases too, so that they are part of the maps.
bool has_biased_maps(const AttentionOptions& target) { return target.rotary && target.projection_bias; }

ProblemForm problem_form(const AttentionOptions& target) {
  const bool biased = has_biased_maps(target);
  return {.frequencies = target.rotary ? *rotary_width_of(target) / 2 : 0,
          .query_bias = biased,
          .key_bias = biased,
          .query_about_mean = target.content_bias && !target.rotary,
          .key_about_mean = !target.rotary};
}

SharedFactors unweighed_factors(const LayerProblem& layer, const SharedFactors& f) {
  return {unweighed(layer.query_weights(), f.query), f.mixing, unweighed(layer.key_weights(), f.key)};
}
SharedFactors weighed_factors(const LayerProblem& layer, const SharedFactors& f) {
  return {weighed(layer.query_weights(), f.query), f.mixing, weighed(layer.key_weights(), f.key)};
}

// Weights are stored in float32. Where factors nearly cancel each other, that changes the error.
SharedFactors as_stored(const SharedFactors& f) {
  const auto rounded = [](const Tensor& x) {
    return x.to(x.is_complex() ? at::kComplexFloat : at::kFloat).to(x.scalar_type());
  };
  return {rounded(f.query), rounded(f.mixing), rounded(f.key)};
}

// A factor [F, E, R / F] as our weight [R, E]: real parts of all pairs, then imaginary ones, where it is complex.
Tensor as_weight(const Tensor& factor) {
  if (!factor.is_complex()) return factor[0].t();
  const Tensor pairs = factor.permute({2, 0, 1}).flatten(0, 1);  // [r F, E]
  return at::cat({at::real(pairs), at::imag(pairs)}, 0);
}

// [F, H, r] -> [H, R].
Tensor as_mixing(const Tensor& mixing) {
  if (!mixing.is_complex()) return mixing[0];
  const Tensor pairs = mixing.permute({1, 2, 0}).flatten(1);  // [H, r F]
  return at::cat({at::real(pairs), at::imag(pairs)}, 1);
}

// u_h, and what the query bias and the mean query give each key; the shared maps' part of the latter is in the scores
// already.
Tensor content_bias(const HeadMaps& maps, const SharedFactors& f, const Moments* queries) {
  Tensor u = maps.content_bias + maps.key.matmul(maps.query_bias.unsqueeze(2)).squeeze(2);  // [H, E]
  if (queries == nullptr) return u;
  const Tensor own = maps.query.transpose(1, 2).matmul(queries->mean);       // x A_h: [H, Dk]
  const Tensor shared = f.mixing[0] * f.query[0].t().matmul(queries->mean);  // (x Q) m_h: [H, R]
  return u + maps.key.matmul(own.unsqueeze(2)).squeeze(2) - shared.matmul(f.key[0].t());
}

// The weight of `name`, whose last column is the bias where `biased`.
void set_shared_map(SchemeFiller* filler, const std::string& name, const Tensor& weight, bool biased) {
  const int64_t E = weight.size(1) - (biased ? 1 : 0);
  filler->set(name + ".weight", weight.slice(1, 0, E));
  if (biased) filler->set(name + ".bias", weight.slice(1, E));
}

void set_values_and_output(SchemeFiller* filler, const HeadMaps& maps) {
  filler->set("value.weight", maps.value.transpose(1, 2));      // [H D, E]
  filler->set("output.weight", maps.output.flatten(0, 1).t());  // [E, H D]
  if (!filler->has("output.bias")) return;
  filler->set("value.bias", maps.value_bias);
  filler->set("output.bias", maps.output_bias);
}

}  // namespace

NeededBiases needed_biases(const HeadMaps& maps, const AttentionOptions& source) {
  const bool ends = not_zero(maps.output_bias) || not_zero(maps.value_bias);
  const bool compared = not_zero(maps.query_bias) || (source.rotary && not_zero(maps.key_bias));
  return {.projection = source.projection_bias || ends || (source.rotary && compared),
          .content = source.content_bias || (!source.rotary && compared)};
}

int64_t full_key_width(const AttentionOptions& source) {
  return scheme_record(source.scheme).shares_key_width ? *source.key_width : source.heads * compared_width(source);
}

int64_t key_width_step(const AttentionOptions& source) { return source.rotary ? period_of(source) : 1; }

AttentionOptions collaborative_options(const AttentionOptions& source, int64_t key_width, const NeededBiases& needed) {
  const int64_t full = full_key_width(source);
  const int64_t step = key_width_step(source);
  HS_CHECK(key_width >= 1 && key_width <= full, "key width ", key_width, " is not within 1..", full,
           ", the widths of all ", source.heads, " heads together");
  HS_CHECK(key_width % step == 0, "key width ", key_width, " must be a multiple of ", step,
           ", after which rotary frequencies repeat; the nearest is ",
           std::max(step, (key_width + step / 2) / step * step));
  AttentionOptions options = source;
  options.scheme = kCollaborative;
  options.key_width = key_width;
  options.projection_bias = needed.projection;
  options.content_bias = needed.content;
  if (source.rotary) options.own.get<CollaborativeOptions>().rotary_width = step;
  return resolve(options);
}

HeadSlices collaborative_slices(const HeadMaps& source, const AttentionOptions& target, const LayerInputs& inputs) {
  return LayerProblem(source, problem_form(target), inputs).slices();
}

Decomposition decompose_layer(const HeadMaps& source, const AttentionOptions& target, const LayerInputs& inputs,
                              const DecompositionOptions& options, const DecompositionProgress& progress) {
  const LayerProblem layer(source, problem_form(target), inputs);
  const int64_t rank = target.rotary ? *target.key_width / *rotary_width_of(target) : *target.key_width;
  const HeadSlices slices = layer.slices();
  Decomposition result = decompose(slices, rank, options, progress);
  result.factors = widened(result.factors, rank);
  result.factors = as_stored(unweighed_factors(layer, result.factors));
  const LayerProblem judged(source, problem_form(target), inputs, InputWeights::kOwn);
  result.error = relative_error(judged.slices(), weighed_factors(judged, result.factors));
  return result;
}

Decomposition fill_collaborative(const HeadMaps& source, const LayerInputs& inputs, const DecompositionOptions& options,
                                 const DecompositionProgress& progress, Scheme* target) {
  const at::NoGradGuard no_grad;
  const AttentionOptions& to = target->options();
  const Decomposition result = decompose_layer(source, to, inputs, options, progress);
  SchemeFiller filler(target);
  const bool biased = has_biased_maps(to);
  set_shared_map(&filler, "query", as_weight(result.factors.query), biased);
  set_shared_map(&filler, "key", as_weight(result.factors.key), biased);
  filler.set("mixing", as_mixing(result.factors.mixing));
  if (to.content_bias) {
    filler.set("content_bias", to.rotary ? source.content_bias : content_bias(source, result.factors, inputs.query));
  }
  set_values_and_output(&filler, source);
  return result;
}

}  // namespace headshare
