#include "headshare/convert/collaborative/decomposition.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "headshare/base/error.h"
#include "headshare/base/rng.h"
#include "headshare/convert/collaborative/line_search.h"
#include "headshare/ops/layer.h"

namespace headshare {
namespace {

// Storing factors in float32 costs about this error. The error is the root of a difference of squares, of which little
// is left there.
constexpr double kExact = 1e-7;
constexpr double kTiny = 1e-150;   // keeps what is divided by from being 0
constexpr int64_t kPatience = 10;  // iterations over which the tolerance is judged

using at::adjoint;

Tensor gram(const Tensor& x) { return adjoint(x).matmul(x); }  // x^H x

// Sums over all but the first axis, of the real parts: [F].
Tensor sum_each(const Tensor& x) {
  const Tensor real = x.is_complex() ? at::real(x) : x;
  return real.flatten(1).sum(1);
}

// [F] against a tensor whose first axis is F.
Tensor shaped_like(const Tensor& each, const Tensor& x) {
  std::vector<int64_t> sizes(static_cast<size_t>(x.dim()), 1);
  sizes[0] = x.size(0);
  return each.view(sizes);
}

// The factors, and what both sweeps and errors need of them again and again.
struct Point {
  SharedFactors factors;
  Tensor queries = {};                    // A^H Q: [F, H, d, R]
  Tensor keys = {};                       // B^H K: [F, H, d, R]
  Tensor query_gram = {}, key_gram = {};  // Q^H Q, K^H K: [F, R, R]; only of a point that is gone to

  // A step moves these tensors in a straight line.
  std::array<Tensor*, 5> parts() { return {&factors.query, &factors.mixing, &factors.key, &queries, &keys}; }
};

// a + step b, part by part, without Gram matrices; step [F].
Point moved(Point a, const Tensor& step, Point b) {
  for (size_t i = 0; i < a.parts().size(); ++i) {
    Tensor& part = *a.parts()[i];
    part = part + shaped_like(step, part) * *b.parts()[i];
  }
  return a;
}

// Re <a, b> over the factors, for each problem: [F].
Tensor inner(const Point& a, const Point& b) {
  return sum_each(a.factors.query.conj() * b.factors.query) + sum_each(a.factors.mixing.conj() * b.factors.mixing) +
         sum_each(a.factors.key.conj() * b.factors.key);
}

// X of X G = N, with G Hermitian and at least semidefinite. A ridge, larger at each attempt, keeps Cholesky going where
// columns depend on each other.
Tensor solved(const Tensor& g, const Tensor& n) {
  const Tensor mean = at::real(g.diagonal(0, -2, -1)).mean(-1).clamp_min(kTiny);  // [F]
  const Tensor one = at::eye(g.size(-1), g.options());
  for (double ridge = 1e-13;; ridge *= 100) {
    const auto [lower, info] = at::linalg_cholesky_ex(g + shaped_like(ridge * mean, g) * one);
    if (info.eq(0).all().item<bool>()) return adjoint(at::cholesky_solve(adjoint(n), lower));
    HS_CHECK(ridge < 1,
             "the normal equations of a decomposition cannot be solved, although every value is finite; "
             "scale the model's query and key weights down");
  }
}

// The norm of each column: [F, R].
Tensor column_norms(const Tensor& x) { return at::real(x * x.conj()).sum(1).sqrt().clamp_min(kTiny); }

// The coefficients of the Gram matrix of x + s dx in the powers of s, given that of x.
std::array<Tensor, 3> gram_polynomial(const Tensor& gram_of_x, const Tensor& x, const Tensor& dx) {
  const Tensor cross = adjoint(x).matmul(dx);
  return {gram_of_x, cross + adjoint(cross), gram(dx)};
}

Tensor value_at(const std::array<Tensor, 3>& polynomial, const Tensor& step) {
  const Tensor s = shaped_like(step, polynomial[0]);
  return polynomial[0] + s * (polynomial[1] + s * polynomial[2]);
}

// A line of points, p + s d.
struct Line {
  Tensor errors = {};                // squared, as coefficients of the powers of s: [F, 7]
  std::array<Tensor, 3> query, key;  // Gram matrices, likewise
};

class Solver {
 public:
  explicit Solver(const HeadSlices& slices)
      : heads_(slices.query.size(1)),
        width_(slices.query.size(3)),
        query_(side_by_side(slices.query)),
        key_(side_by_side(slices.key)),
        norms_(sum_each(gram(slices.query) * gram(slices.key).conj())) {}

  const Tensor& norms() const { return norms_; }  // sum |P_h|^2 for each problem: [F]

  Point point(SharedFactors factors) const {
    return {factors, projected(query_, factors.query), projected(key_, factors.key), gram(factors.query),
            gram(factors.key)};
  }

  // The largest of all heads' singular triples.
  SharedFactors best_of_heads(const HeadSlices& slices, int64_t rank) const {
    const auto [query_basis, query_rest] = at::linalg_qr(slices.query);
    const auto [key_basis, key_rest] = at::linalg_qr(slices.key);
    const auto [u, values, vh] = at::linalg_svd(query_rest.matmul(adjoint(key_rest)), /*full_matrices=*/false);
    const Tensor root = values.sqrt().unsqueeze(-2);  // [F, H, 1, d]
    const Tensor queries = side_by_side(query_basis.matmul(u) * root);
    const Tensor keys = side_by_side(key_basis.matmul(adjoint(vh)) * root);
    const Tensor chosen = std::get<1>(values.flatten(1).topk(rank, 1));  // [F, R] among H d
    const Tensor mixing = at::zeros({chosen.size(0), heads_, rank}, queries.options());
    const Tensor head = chosen.div(values.size(2), "floor").unsqueeze(1);
    mixing.scatter_(1, head, at::ones_like(head, queries.options()));
    const auto columns = [&](const Tensor& all) {
      return all.gather(2, chosen.unsqueeze(1).expand({all.size(0), all.size(1), rank})).contiguous();
    };
    return {columns(queries), mixing, columns(keys)};
  }

  // Random mixtures of the heads' own maps, with the mixing that fits them best.
  SharedFactors random(int64_t rank, uint64_t key) const {
    const at::Generator generator = keyed_generator(at::kCPU, key);
    const auto mixture = [&](const Tensor& maps) {
      const Tensor weights = at::randn({maps.size(0), maps.size(2), rank}, generator, maps.options());
      return maps.matmul(weights);
    };
    Point one{.factors = {mixture(query_), Tensor(), mixture(key_)}};
    one = point(one.factors);
    one.factors.mixing = best_mixing(one);
    return one.factors;
  }

  // One sweep of alternating least squares: each factor is the best for the other two.
  Point swept(Point p) const {
    SharedFactors& f = p.factors;
    const Tensor heads = gram(f.mixing);
    f.query = solved(heads.conj() * p.key_gram, spread(query_, p.keys * f.mixing.conj().unsqueeze(2)));
    p.queries = projected(query_, f.query);
    p.query_gram = gram(f.query);
    f.key = solved(heads * p.query_gram, spread(key_, p.queries * f.mixing.unsqueeze(2)));
    p.keys = projected(key_, f.key);
    p.key_gram = gram(f.key);
    f.mixing = best_mixing(p);
    return balanced(p);
  }

  // Squared errors: [F].
  Tensor squared_errors(const Point& p) const {
    const Tensor model = sum_each(gram(p.factors.mixing) * p.query_gram * p.key_gram.conj());
    return norms_ - 2 * fit(p.factors.mixing, p.queries, p.keys) + model;
  }

  // From a point with its Gram matrices.
  Line line(const Point& p, const Point& d) const {
    std::vector<Tensor> total(7);
    const auto add = [&](size_t power, const Tensor& value) {
      total[power] = total[power].defined() ? total[power] + value : value;
    };
    Line line{.query = gram_polynomial(p.query_gram, p.factors.query, d.factors.query),
              .key = gram_polynomial(p.key_gram, p.factors.key, d.factors.key)};
    const auto mixing = gram_polynomial(gram(p.factors.mixing), p.factors.mixing, d.factors.mixing);
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 3; ++j) {
        const Tensor pair = line.query[i] * line.key[j].conj();
        for (size_t k = 0; k < 3; ++k) add(i + j + k, sum_each(pair * mixing[k]));
      }
    }
    for (size_t i = 0; i < 4; ++i) {
      const Tensor& queries = (i & 1) == 0 ? p.queries : d.queries;
      const Tensor& keys = (i >> 1) == 0 ? p.keys : d.keys;
      const Tensor fits = (queries.conj() * keys).sum(2);  // [F, H, R]
      const size_t power = (i & 1) + (i >> 1);
      add(power, -2 * sum_each(p.factors.mixing.conj() * fits));
      add(power + 1, -2 * sum_each(d.factors.mixing.conj() * fits));
    }
    add(0, norms_);
    line.errors = at::stack(total, 1);
    return line;
  }

  // Columns of mixing with mean square 1 over heads, and of queries and keys with equal norms.
  static SharedFactors normalised(const SharedFactors& f) {
    const Tensor q = column_norms(f.query);
    const Tensor k = column_norms(f.key);
    const Tensor m = column_norms(f.mixing) / std::sqrt(static_cast<double>(f.mixing.size(1)));
    const Tensor each = (q * k * m).sqrt();
    const auto scaled = [](const Tensor& x, const Tensor& by) { return x * by.unsqueeze(1); };
    return {scaled(f.query, each / q), scaled(f.mixing, 1 / m), scaled(f.key, each / k)};
  }

 private:
  // [F, H, E, d] -> [F, E, H d], heads side by side.
  static Tensor side_by_side(const Tensor& maps) { return maps.transpose(1, 2).flatten(2).contiguous(); }

  // maps^H x for each head: [F, E, H d], [F, E, R] -> [F, H, d, R].
  Tensor projected(const Tensor& maps, const Tensor& x) const {
    return adjoint(maps).matmul(x).view({x.size(0), heads_, width_, x.size(2)});
  }
  // sum_h maps_h x_h: [F, E, H d], [F, H, d, R] -> [F, E, R].
  static Tensor spread(const Tensor& maps, const Tensor& x) { return maps.matmul(x.flatten(1, 2)); }

  // Re sum_h <Q diag(m_h) K^H, P_h>: [F].
  static Tensor fit(const Tensor& mixing, const Tensor& queries, const Tensor& keys) {
    return sum_each(mixing.conj() * (queries.conj() * keys).sum(2));
  }

  static Tensor best_mixing(const Point& p) {
    return solved(p.query_gram.conj() * p.key_gram, (p.queries.conj() * p.keys).sum(2));
  }

  // The same product with all three factors' columns of one norm, where sweeps and directions are well scaled.
  static Point balanced(Point p) {
    const auto norms = [](const Tensor& g) { return at::real(g.diagonal(0, -2, -1)).sqrt().clamp_min(kTiny); };
    const Tensor q = norms(p.query_gram);
    const Tensor k = norms(p.key_gram);
    const Tensor m = column_norms(p.factors.mixing);
    const Tensor each = (q.log() + k.log() + m.log()).div(3).exp();
    const auto scale = [](Tensor& x, const Tensor& by) {
      x = x * by.view(x.dim() == 3 ? at::IntArrayRef{by.size(0), 1, by.size(1)}
                                   : at::IntArrayRef{by.size(0), 1, 1, by.size(1)});
    };
    scale(p.factors.query, each / q);
    scale(p.queries, each / q);
    scale(p.factors.key, each / k);
    scale(p.keys, each / k);
    scale(p.factors.mixing, each / m);
    return p;
  }

  int64_t heads_, width_;
  Tensor query_, key_;  // [F, E, H d]
  Tensor norms_;
};

// Nonlinear conjugate gradients preconditioned by a sweep (De Sterck and Winlaw, 2015): a sweep says where to go, the
// direction before is added so far as it helps, and the step is the best one.
class Descent {
 public:
  Descent(const Solver& solver, SharedFactors start)
      : solver_(solver), at_(solver.point(std::move(start))), squared_errors_(solver.squared_errors(at_)) {}

  const Point& at() const { return at_; }
  const Tensor& squared_errors() const { return squared_errors_; }  // [F]

  void advance() {
    const Tensor one = at::ones_like(solver_.norms());
    const Point change = moved(solver_.swept(at_), -one, at_);
    Point direction = change;
    if (last_change_) {
      const Tensor turned = inner(change, moved(change, -one, *last_change_));
      const Tensor share = (turned / inner(*last_change_, *last_change_).clamp_min(kTiny)).clamp(0, kMostOfLast);
      direction = moved(change, share, *last_direction_);
    }
    const Line line = solver_.line(at_, direction);
    const Tensor step = best_steps(line.errors);
    if (step.gt(0).all().item<bool>()) {
      go(line, step, direction);
    } else {  // no step helps some problem: it begins anew, with the sweep itself
      const Tensor stuck = step.le(0).to(at::kDouble);
      direction = moved(direction, -stuck, moved(direction, -one, change));
      go(solver_.line(at_, direction), step + stuck, direction);
    }
    last_change_ = change;
    last_direction_ = direction;
  }

 private:
  void go(const Line& line, const Tensor& step, const Point& direction) {
    at_ = moved(at_, step, direction);
    at_.query_gram = value_at(line.query, step);
    at_.key_gram = value_at(line.key, step);
    const Tensor powers = step.unsqueeze(1).pow(at::arange(7, step.options()));  // [F, 7]
    squared_errors_ = (line.errors * powers).sum(1);
  }

  static constexpr double kMostOfLast = 10;

  const Solver& solver_;
  Point at_;
  Tensor squared_errors_;
  std::optional<Point> last_change_, last_direction_;
};

// E lowered to H d where it is more: the maps' columns in an orthonormal basis of their span.
struct InBasis {
  Tensor basis;  // [F, E, H d]; undefined: the maps stand as they are
  Tensor maps;   // [F, H, H d or E, d]
};

InBasis in_basis(const Tensor& maps) {
  const int64_t F = maps.size(0), H = maps.size(1), E = maps.size(2), d = maps.size(3);
  if (E <= H * d) return {Tensor(), maps};
  auto [basis, rest] = at::linalg_qr(maps.transpose(1, 2).flatten(2));  // rest [F, H d, H d]
  return {basis, rest.view({F, H * d, H, d}).transpose(1, 2).contiguous()};
}

Tensor out_of_basis(const Tensor& basis, const Tensor& x) { return basis.defined() ? basis.matmul(x) : x; }

bool flat(const std::vector<double>& errors, double tolerance) {
  if (errors.back() < kExact) return true;
  if (errors.size() <= static_cast<size_t>(kPatience)) return false;
  const double before = errors[errors.size() - 1 - static_cast<size_t>(kPatience)];
  return before - errors.back() < tolerance * errors.back();
}

double relative(const Solver& solver, const Tensor& squared_errors) {
  const double norm = std::sqrt(std::max(solver.norms().sum().item<double>(), kTiny));
  return std::sqrt(std::max(squared_errors.sum().item<double>(), 0.0)) / norm;
}

// One try from `start`. False in *go_on once `progress` says to stop.
Decomposition descend(const Solver& solver, SharedFactors start, const DecompositionOptions& options,
                      const std::function<bool(double)>& progress, bool* go_on) {
  Descent descent(solver, std::move(start));
  Decomposition best{.factors = descent.at().factors, .errors = {relative(solver, descent.squared_errors())}};
  for (int64_t i = 0; i < options.iterations && *go_on && !flat(best.errors, options.tolerance); ++i) {
    descent.advance();
    const double error = relative(solver, descent.squared_errors());
    if (error < best.errors.back()) best.factors = descent.at().factors;
    best.errors.push_back(std::min(error, best.errors.back()));
    *go_on = progress(best.errors.back());
  }
  best.error = best.errors.back();
  return best;
}

}  // namespace

SharedFactors widened(const SharedFactors& factors, int64_t rank) {
  const int64_t missing = rank - factors.query.size(2);
  const auto wide = [missing](const Tensor& x) { return at::constant_pad_nd(x, {0, missing}); };
  return {wide(factors.query), wide(factors.mixing), wide(factors.key)};
}

double relative_error(const HeadSlices& slices, const SharedFactors& factors) {
  const Solver solver(slices);
  return relative(solver, solver.squared_errors(solver.point(factors)));
}

int64_t full_rank(const HeadSlices& slices) {
  return slices.query.size(1) * std::min(slices.query.size(3), std::min(slices.query.size(2), slices.key.size(2)));
}

Decomposition decompose(const HeadSlices& slices, int64_t rank, const DecompositionOptions& options,
                        const DecompositionProgress& progress) {
  HS_CHECK(rank >= 1, "a decomposition's width must be at least 1, not ", rank);
  HS_CHECK(at::isfinite(slices.query).all().item<bool>() && at::isfinite(slices.key).all().item<bool>(),
           "query or key maps hold values that are not finite");
  const at::NoGradGuard no_grad;
  rank = std::min(rank, full_rank(slices));
  const InBasis query = in_basis(slices.query);
  const InBasis key = in_basis(slices.key);
  const HeadSlices small{query.maps, key.maps};
  const Solver solver(small);
  bool go_on = true;
  int64_t done = 0;
  Decomposition best;
  for (int64_t i = 0; i <= options.restarts && go_on; ++i) {
    const auto tell = [&](double error) {
      return progress == nullptr || progress(++done, best.errors.empty() ? error : std::min(error, best.error));
    };
    SharedFactors start =
        i == 0 ? solver.best_of_heads(small, rank)
               : solver.random(rank, stream_key(static_cast<uint64_t>(options.seed), static_cast<uint64_t>(i)));
    Decomposition tried = descend(solver, std::move(start), options, tell, &go_on);
    if (best.errors.empty() || tried.error < best.error) best = std::move(tried);
  }
  best.factors = Solver::normalised(best.factors);
  best.factors.query = out_of_basis(query.basis, best.factors.query);
  best.factors.key = out_of_basis(key.basis, best.factors.key);
  return best;
}

}  // namespace headshare
