#include "headshare/convert/shared_heads/tied_heads.h"

#include <ATen/ATen.h>

#include "headshare/convert/collaborative/rotary_maps.h"
#include "headshare/convert/shared_heads/shared_maps.h"

namespace headshare {
namespace {

// X with X form = right for each head, form symmetric: [H, E, D], [H, D, D].
Tensor divided_by_form(const Tensor& right, const Tensor& form) {
  constexpr double kRidge = 1e-12;
  const Tensor size = form.diagonal(0, 1, 2).mean(1).clamp_min(kLeastSize).view({-1, 1, 1});
  return at::linalg_solve(form + kRidge * size * at::eye(form.size(1), form.options()), right.mT()).mT();
}

// Keys are free but for a complex factor of each pair of columns, which queries take up; values are free but for what
// output maps take up. Given both, W is a least squares problem: each pair of columns has a weight and a target from
// the keys, and values add a quadratic form.
class AlternatingTie {
 public:
  AlternatingTie(const HeadSlices& scores, const HeadSlices& values)
      : key_(scores.key.squeeze(3).permute({1, 2, 0})),
        query_(at::real(scores.query * scores.query.conj()).sum(2).squeeze(2).t()),
        value_(values.key[0]),
        output_(values.query[0].mT().matmul(values.query[0])) {}

  Tensor run() const {
    Tensor w = as_pairs_of_columns(key_);
    for (int i = 0; i < kIterations; ++i) w = better(w);
    return w;
  }

 private:
  static constexpr int kIterations = 40;

  Tensor better(const Tensor& w) const {
    const Tensor turning = as_complex(w);                                                   // [H, E', F]
    const Tensor length = at::real(turning * turning.conj()).sum(1).clamp_min(kLeastSize);  // [H, F]
    const Tensor factor = (turning * key_.conj()).sum(1) / length;                   // key = conj(factor) w: [H, F]
    const Tensor weight = query_ * at::real(factor * factor.conj());                 // [H, F]
    const Tensor weights = at::diag_embed(at::cat({weight, weight}, 1));             // [H, D, D]
    const Tensor keys = as_pairs_of_columns(key_ * (query_ * factor).unsqueeze(1));  // [H, E', D]
    const int64_t E = value_.size(1);
    const Tensor taken = coefficients(w.slice(1, 0, E), value_);  // V = W C: [H, D, Dv]
    const Tensor values = output_.matmul(taken.mT());             // O O^T C^T
    const Tensor rows = divided_by_form(keys.slice(1, 0, E) + value_.matmul(values), weights + taken.matmul(values));
    return at::cat({rows, divided_by_form(keys.slice(1, E), weights)}, 1);
  }

  Tensor key_;     // b: [H, E', F], complex
  Tensor query_;   // |a|^2: [H, F]
  Tensor value_;   // V: [H, E, Dv]
  Tensor output_;  // O O^T: [H, Dv, Dv]
};

}  // namespace

Tensor tied_maps(const HeadSlices& scores, const HeadSlices& values, int64_t width) {
  const HeadSlices keys = normalised(scores);
  const HeadSlices alike = normalised(values);
  if (keys.key.is_complex()) return AlternatingTie(keys, alike).run();
  return leading_directions(at::cat({key_directions(keys, 1), key_directions(alike, 1)}, 3), width)[0];
}

}  // namespace headshare
