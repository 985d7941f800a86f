#include "headshare/convert/collaborative/layer_problem.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/convert/collaborative/rotary_maps.h"

namespace headshare {
namespace {

// Directions in which inputs hardly move still count a little: by this share of the mean direction.
constexpr double kFloor = 1e-3;

// Variance below this share of the inputs' mean square is what rounding leaves.
constexpr double kRounding = 1e-13;

// W with W^T W = `second`, and a little more of every direction. `size`: the mean square of the inputs.
Tensor solvable_root(const Tensor& second, double size) {
  const int64_t E = second.size(0);
  // An input that hardly varies, such as one token again and again, is weighed by its size.
  const double spread = std::max({second.trace().item<double>(), kFloor * size, 1e-12});
  return at::linalg_cholesky(second + kFloor * spread / static_cast<double>(E) * at::eye(E, second.options())).t();
}

// W with W^T W = `second`, which has no inverse where the inputs leave a direction out.
Tensor own_root(const Tensor& second, double size) {
  const auto [values, vectors] = at::linalg_eigh(second);
  const Tensor variances = at::where(values > kRounding * size, values, at::zeros_like(values));
  return variances.sqrt().unsqueeze(1) * vectors.t();
}

}  // namespace

Tensor input_weights(const Moments* moments, bool about_mean, bool constant, InputWeights kind) {
  if (moments == nullptr) return {};
  Tensor second = moments->second;
  const double size = second.trace().item<double>();
  if (about_mean || constant) second = second - at::outer(moments->mean, moments->mean);
  const Tensor weights = kind == InputWeights::kOwn ? own_root(second, size) : solvable_root(second, size);
  if (!constant) return weights;
  const Tensor last = at::cat({moments->mean, at::ones({1}, weights.options())}).unsqueeze(0);
  return at::cat({at::constant_pad_nd(weights, {0, 1}), last}, 0);
}

Tensor weighed(const Tensor& weights, const Tensor& maps) {
  return weights.defined() ? weights.to(maps.scalar_type()).matmul(maps) : maps;
}

Tensor unweighed(const Tensor& weights, const Tensor& maps) {
  if (!weights.defined()) return maps;
  const Tensor columns = maps.movedim(-2, 0);  // solved together: W is factorised once
  const Tensor solved = at::linalg_solve(weights.to(maps.scalar_type()), columns.flatten(1));
  return solved.view(columns.sizes()).movedim(0, -2);
}

LayerProblem::LayerProblem(const HeadMaps& maps, const ProblemForm& form, const LayerInputs& inputs, InputWeights kind)
    : maps_(maps),
      form_(form),
      query_weights_(input_weights(inputs.query, form.query_about_mean, form.query_bias, kind)),
      key_weights_(input_weights(inputs.key, form.key_about_mean, form.key_bias, kind)) {}

HeadSlices LayerProblem::slices_of(const HeadMaps& maps) const {
  return {weighed(query_weights_, problems(maps.query, maps.query_bias, form_.query_bias)),
          weighed(key_weights_, problems(maps.key, maps.key_bias, form_.key_bias))};
}

Tensor LayerProblem::problems(const Tensor& maps, const Tensor& bias, bool biased) const {
  const Tensor all = biased ? at::cat({maps, bias.unsqueeze(1)}, 1) : maps;
  return form_.frequencies > 0 ? by_frequency(all, form_.frequencies) : all.unsqueeze(0);
}

}  // namespace headshare
