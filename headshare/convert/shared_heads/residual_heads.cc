#include "headshare/convert/shared_heads/residual_heads.h"

#include <ATen/ATen.h>

#include <optional>

#include "headshare/convert/collaborative/rotary_maps.h"
#include "headshare/convert/shared_heads/shared_maps.h"

namespace headshare {
namespace {

constexpr int kSweepsOfResiduals = 200;  // at most
constexpr double kLeastGain = 1e-3;      // of the error, in ten sweeps
constexpr double kLeastError = 1e-10;    // of all: what rounding leaves

// Returns X with X x the identity, as far as x [.., n, d] has directions: [.., d, n].
Tensor inverse_of(const Tensor& x) { return coefficients(x, at::eye(x.size(-2), x.options())); }

// Returns U [.., E, r] and B [.., r, n], whose product is the best approximation of rank r of x [.., E, n].
std::pair<Tensor, Tensor> of_rank(const Tensor& x, int64_t rank) {
  const Tensor inner = leading_directions(x, rank);
  return {inner, inner.mT().matmul(x)};
}

// This solves the least squares problem Z_h = (W + U_h B_h) G_h. Queries leave G_h free: any matrix, or, where pairs of
// columns turn, a complex number for each.
class AlternatingResiduals {
 public:
  AlternatingResiduals(const HeadSlices& slices, int64_t rank) : rank_(rank), turning_(slices.key.is_complex()) {
    if (turning_) {
      const Tensor sizes =
          at::real(slices.query * slices.query.conj()).sum(2, /*keepdim=*/true).sqrt();  // [F, H, 1, 1]
      target_ = as_real_maps(slices.key * sizes);
      own_ = at::diag_embed(sizes.flatten(1).t().repeat({1, 2}));  // [H, D, D]
    } else {
      own_ = gram_root(slices.query)[0];
      target_ = slices.key[0].matmul(own_);
    }
  }

  // Starts from the shared map alone, or with what each head makes of it.
  void start(const Tensor& shared, const std::optional<Tensor>& mixing = {}) {
    result_.shared = shared;
    mixing_ = mixing ? *mixing : best_mixing(shared.expand({target_.size(0), -1, -1}));
  }

  // Returns the error that is left, |change|^2.
  double improve() {
    const double all = target_.square().sum().item<double>();
    double error = 0;
    for (int i = 0; i < kSweepsOfResiduals; ++i) {
      sweep();
      if (i % 10 != 9) continue;
      const double now = (target_ - result_.heads().matmul(mixing_)).square().sum().item<double>();
      if (now <= kLeastError * kLeastError * all || (i > 9 && now > (1 - 2 * kLeastGain) * error)) return now;
      error = now;
    }
    return error;
  }

  const ResidualHeads& result() const { return result_; }
  const Tensor& own() const { return own_; }

 private:
  void sweep() {
    const Tensor back = inverse_of(mixing_);  // [H, d, D]
    const Tensor rest = target_ - result_.shared.matmul(mixing_);
    std::tie(result_.inner, result_.outer) = of_rank(rest.matmul(back).matmul(mixing_), rank_);
    result_.outer = result_.outer.matmul(back);
    const Tensor for_shared = target_ - result_.inner.matmul(result_.outer.matmul(mixing_));
    result_.shared = solved(mixing_.matmul(mixing_.mT()).sum(0), for_shared.matmul(mixing_.mT()).sum(0).t()).t();
    mixing_ = best_mixing(result_.heads());
  }

  // Returns the G_h [H, D, d] that do best with maps [H, E, D].
  Tensor best_mixing(const Tensor& maps) const {
    if (!turning_) return coefficients(maps, target_);
    const Tensor have = as_complex(maps), want = as_complex(target_);  // [H, E, F]
    const Tensor sizes = at::real(have * have.conj()).sum(1).clamp_min(kLeastSize);
    return turning_matrices((have.conj() * want).sum(1) / sizes);
  }

  int64_t rank_;
  bool turning_;
  Tensor target_;  // Z: [H, E, d]
  Tensor own_;     // G of the heads' own maps: [H, d, d]
  ResidualHeads result_;
  Tensor mixing_;  // G: [H, D, d]
};

}  // namespace

Tensor ResidualHeads::heads() const { return shared + inner.matmul(outer); }

ResidualHeads residual_heads(const HeadSlices& slices, int64_t width, int64_t rank) {
  const bool turning = slices.key.is_complex();
  const int64_t missing = turning ? 0 : width - slices.key.size(3);  // of heads whose keys are narrower
  AlternatingResiduals problem(slices, rank);
  std::optional<ResidualHeads> best;
  double least = 0;
  const auto take = [&] {
    const double error = problem.improve();
    if (best && error >= least) return;
    best = problem.result();
    least = error;
  };
  const auto shared_key = [&](Pooling how) { return as_real_maps(pooled(slices, 1, turning ? 1 : width, how).key)[0]; };
  problem.start(shared_key(Pooling::kLeastSquares));
  take();
  if (missing == 0) {
    problem.start(shared_key(Pooling::kAligned));
    take();
  }
  if (missing >= 0) {
    const Tensor mean = as_real_maps(slices.key).mean(0);
    problem.start(at::constant_pad_nd(mean, {0, missing}), at::constant_pad_nd(problem.own(), {0, 0, 0, missing}));
    take();
  }
  return *best;
}

}  // namespace headshare
