#include "headshare/convert/reparametrise/collaborative.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"

namespace headshare {
namespace {

// Directions in which inputs hardly move still count a little: by this share of the mean direction.
constexpr double kFloor = 1e-3;

bool not_zero(const Tensor& x) { return x.ne(0).any().item<bool>(); }

// What weighs errors on one side: L with L L^T the inputs' second moment, about the mean where what the mean does costs
// no error. Undefined without moments. `constant`: inputs end with a 1, which biases multiply.
Tensor weights_of(const Moments* moments, bool about_mean, bool constant) {
  if (moments == nullptr) return {};
  Tensor second = moments->second;
  HS_CHECK(
      at::isfinite(second).all().item<bool>(),
      "the model's hidden states on the sample text are not finite; its weights are damaged, or training diverged");
  const double size = second.trace().item<double>();
  if (about_mean) second = second - at::outer(moments->mean, moments->mean);
  const int64_t E = second.size(0);
  // What hardly varies at all, as the same token again and again, is weighed by its size.
  const double spread = std::max({second.trace().item<double>(), kFloor * size, 1e-12});
  second = second + kFloor * spread / static_cast<double>(E) * at::eye(E, second.options());
  if (constant) {
    const Tensor mean = moments->mean.unsqueeze(1);
    const Tensor one = at::ones({1, 1}, second.options());
    second = at::cat({at::cat({second, mean}, 1), at::cat({mean.t(), one}, 1)}, 0);
  }
  return at::linalg_cholesky(second);
}

// L^T maps, and back.
Tensor weighed(const Tensor& lower, const Tensor& maps) {
  return lower.defined() ? lower.t().to(maps.scalar_type()).matmul(maps) : maps;
}
Tensor unweighed(const Tensor& lower, const Tensor& factor) {
  if (!lower.defined()) return factor;
  return at::linalg_solve_triangular(lower.t().to(factor.scalar_type()), factor, /*upper=*/true);
}

// The width after which the frequencies of a head repeat.
int64_t period_of(const AttentionOptions& options) {
  return options.rotary_width ? *options.rotary_width : compared_width(options);
}

// [H, E, Dk] -> [F, H, E, Dk / 2 F], complex: a problem for each of F frequencies.
Tensor by_frequency(const Tensor& maps, int64_t F) {
  const int64_t half = maps.size(2) / 2;
  const Tensor turning = at::complex(maps.slice(2, 0, half).contiguous(), maps.slice(2, half).contiguous());
  return turning.view({maps.size(0), maps.size(1), half / F, F}).permute({3, 0, 1, 2}).contiguous();
}

// A decomposition's way from a layer's maps and back.
class LayerProblem {
 public:
  LayerProblem(const HeadMaps& maps, const AttentionOptions& target, const LayerInputs& inputs)
      : maps_(maps), frequencies_(target.rotary ? *target.rotary_width / 2 : 0), biased_(is_biased(target)) {
    query_weights_ = weights_of(inputs.query, target.content_bias && !target.rotary, biased_);
    key_weights_ = weights_of(inputs.key, !target.rotary, biased_);
  }

  HeadSlices slices() const {
    return {weighed(query_weights_, problems(maps_.query, maps_.query_bias)),
            weighed(key_weights_, problems(maps_.key, maps_.key_bias))};
  }

  SharedFactors unweighed_factors(const SharedFactors& f) const {
    return {unweighed(query_weights_, f.query), f.mixing, unweighed(key_weights_, f.key)};
  }
  SharedFactors weighed_factors(const SharedFactors& f) const {
    return {weighed(query_weights_, f.query), f.mixing, weighed(key_weights_, f.key)};
  }

  static bool is_biased(const AttentionOptions& target) { return target.rotary && target.projection_bias; }

 private:
  // [H, E, Dk] with its bias [H, Dk] -> [F, H, E or E + 1, d].
  Tensor problems(const Tensor& maps, const Tensor& bias) const {
    const Tensor all = biased_ ? at::cat({maps, bias.unsqueeze(1)}, 1) : maps;
    return frequencies_ > 0 ? by_frequency(all, frequencies_) : all.unsqueeze(0);
  }

  const HeadMaps& maps_;
  int64_t frequencies_;  // F; 0 without rotary positions
  bool biased_;
  Tensor query_weights_, key_weights_;  // lower triangular, or undefined
};

// Where heads have fewer directions together than the width that is asked for, the rest is 0.
SharedFactors widened(const SharedFactors& f, int64_t rank) {
  const int64_t missing = rank - f.query.size(2);
  const auto wide = [missing](const Tensor& x) { return at::constant_pad_nd(x, {0, missing}); };
  return {wide(f.query), wide(f.mixing), wide(f.key)};
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

class Filler {
 public:
  explicit Filler(Scheme* scheme) {
    for (const Declared& one : declared_parameters(*scheme)) {
      one.tensor.zero_();
      parameters_.emplace(one.name, one.tensor);
    }
  }

  bool has(const std::string& name) const { return parameters_.count(name) > 0; }

  void set(const std::string& name, const Tensor& values) {
    parameters_.at(name).copy_(values.view_as(parameters_.at(name)));
  }

 private:
  std::map<std::string, Tensor> parameters_;
};

// The weight of `name`, whose last column is the bias where `biased`.
void set_shared_map(Filler* filler, const std::string& name, const Tensor& weight, bool biased) {
  const int64_t E = weight.size(1) - (biased ? 1 : 0);
  filler->set(name + ".weight", weight.slice(1, 0, E).contiguous());
  if (biased) filler->set(name + ".bias", weight.slice(1, E).contiguous());
}

void set_values_and_output(Filler* filler, const HeadMaps& maps) {
  filler->set("value.weight", maps.value.transpose(1, 2).contiguous());      // [H D, E]
  filler->set("output.weight", maps.output.flatten(0, 1).t().contiguous());  // [E, H D]
  if (!filler->has("output.bias")) return;
  filler->set("value.bias", maps.value_bias.contiguous());
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
  options.scheme = "collaborative";
  options.key_width = key_width;
  options.projection_bias = needed.projection;
  options.content_bias = needed.content;
  if (source.rotary) options.rotary_width = step;
  return resolve(options);
}

Decomposition decompose_layer(const HeadMaps& source, const AttentionOptions& target, const LayerInputs& inputs,
                              const DecompositionOptions& options, const DecompositionProgress& progress) {
  const LayerProblem layer(source, target, inputs);
  const int64_t rank = target.rotary ? *target.key_width / *target.rotary_width : *target.key_width;
  const HeadSlices slices = layer.slices();
  Decomposition result = decompose(slices, rank, options, progress);
  result.factors = widened(result.factors, rank);
  result.factors = as_stored(layer.unweighed_factors(result.factors));
  result.error = relative_error(slices, layer.weighed_factors(result.factors));
  return result;
}

Decomposition fill_collaborative(const HeadMaps& source, const LayerInputs& inputs, const DecompositionOptions& options,
                                 const DecompositionProgress& progress, Scheme* target) {
  const at::NoGradGuard no_grad;
  const AttentionOptions& to = target->options();
  const Decomposition result = decompose_layer(source, to, inputs, options, progress);
  Filler filler(target);
  const bool biased = LayerProblem::is_biased(to);
  set_shared_map(&filler, "query", as_weight(result.factors.query), biased);
  set_shared_map(&filler, "key", as_weight(result.factors.key), biased);
  filler.set("mixing", as_mixing(result.factors.mixing).contiguous());
  if (to.content_bias) {
    filler.set("content_bias", to.rotary ? source.content_bias : content_bias(source, result.factors, inputs.query));
  }
  set_values_and_output(&filler, source);
  return result;
}

}  // namespace headshare
