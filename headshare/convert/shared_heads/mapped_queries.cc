#include "headshare/convert/shared_heads/mapped_queries.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/convert/collaborative/rotary_maps.h"
#include "headshare/convert/shared_heads/shared_maps.h"

namespace headshare {
namespace {

constexpr int kSweepsOfMaps = 60;

// Returns X with X g = b, g symmetric and perhaps singular: [.., n, d], [d, d].
Tensor divided_by_square(const Tensor& b, const Tensor& g) { return solved(g, b.mT()).mT(); }

// Returns the matrix whose rows and columns i and i + D / 2 are mixed by the 2 x 2 `block`, for each i: [D / 2, D, D].
Tensor pair_matrices(const Tensor& block, int64_t D) {
  const Tensor each = at::eye(D / 2, block.options());
  const Tensor places = at::diag_embed(each);  // [D / 2, D / 2, D / 2], 1 at (i, i, i)
  const auto part = [&](int64_t row, int64_t column) { return places * block[row][column]; };
  return at::cat({at::cat({part(0, 0), part(0, 1)}, 2), at::cat({part(1, 0), part(1, 1)}, 2)}, 1);
}

// Returns the matrices that maps of this form are sums of: [n, D, D]. A query is a row, so that column i says what
// makes its dimension i.
Tensor summands(QueryMap map, int64_t D) {
  const auto pairs = [D](std::initializer_list<double> block) {
    return pair_matrices(at::tensor(at::ArrayRef<double>(block), at::kDouble).view({2, 2}), D);
  };
  if (map == QueryMap::kDiagonal) return at::diag_embed(at::eye(D, at::kDouble));
  if (map == QueryMap::kComplex) return at::cat({pairs({1, 0, 0, 1}), pairs({0, 1, -1, 0})});
  return at::cat({pairs({1, 0, 0, 0}), pairs({0, 0, 1, 0}), pairs({0, 1, 0, 0}), pairs({0, 0, 0, 1})});
}

// Queries Y_h = Q_h R of single heads are what W M_h R has to be close to; R weighs errors by what the key map makes of
// them.
class MapsOfQueries {
 public:
  MapsOfQueries(int64_t width, const SharedQueryOptions& map) : D_(width), map_(map) {
    const bool sums = map.map == QueryMap::kDiagonal || map.map == QueryMap::kComplex || map.map == QueryMap::kBlocks;
    if (sums) summands_ = summands(map.map, width);
  }

  // queries [H, E, D], root [D, D].
  void fit(const Tensor& queries, const Tensor& root, MappedQueries* result) const {
    if (map_.map == QueryMap::kFull) return fit_full(queries, root, result);
    if (!result->query.defined()) start(queries, root, result);
    if (map_.map == QueryMap::kLowRank) fit_low_rank(queries, root, result);
    if (summands_.defined()) fit_sums(queries, root, result);
    // W given all M_h: sum over h of Y_h N_h^T, divided by sum of N_h N_h^T, with N_h = M_h R.
    const Tensor made = result->maps.matmul(root);
    const Tensor square = made.matmul(made.mT()).sum(0);
    result->query = divided_by_square(queries.matmul(root).matmul(made.mT()).sum(0), square);
  }

 private:
  Tensor all_directions(const Tensor& queries, const Tensor& root, int64_t width) const {
    return leading_directions(queries.matmul(root).transpose(0, 1).flatten(1), width);  // [E, width]
  }

  void fit_full(const Tensor& queries, const Tensor& root, MappedQueries* result) const {
    result->query = all_directions(queries, root, map_.width.value_or(D_));
    result->maps = result->query.t().matmul(queries);
  }

  // The mean query, in the directions that all heads need most; every head has it.
  void start(const Tensor& queries, const Tensor& root, MappedQueries* result) const {
    const Tensor directions = all_directions(queries, root, D_);
    const Tensor mean = queries.mean(0);
    result->query = map_.map == QueryMap::kIdentity ? mean : directions.matmul(directions.t().matmul(mean));
    result->maps = at::eye(D_, queries.options()).expand({queries.size(0), -1, -1});
  }

  // U_h B_h is the best of rank r in the lengths that W and R give: with W = S L^T, S orthonormal, L^T U_h B_h R is the
  // start of a singular value decomposition.
  void fit_low_rank(const Tensor& queries, const Tensor& root, MappedQueries* result) const {
    const Tensor directions = leading_directions(result->query, D_);                    // S: [E, D]
    const Tensor lengths = directions.t().matmul(result->query);                        // L^T: [D, D]
    const Tensor wanted = directions.t().matmul(queries - result->query).matmul(root);  // [H, D, D]
    const Tensor inner = leading_directions(wanted, *map_.rank);                        // [H, D, r]
    result->inner = at::linalg_pinv(lengths, kCutOff).matmul(inner);
    result->outer = inner.mT().matmul(wanted).matmul(at::linalg_pinv(root, kCutOff));
    result->maps = at::eye(D_, queries.options()) + result->inner.matmul(result->outer);
  }

  // The numbers t_h of M_h = sum over k of t_hk S_k, by normal equations.
  void fit_sums(const Tensor& queries, const Tensor& root, MappedQueries* result) const {
    const Tensor square = result->query.t().matmul(result->query);  // [D, D]
    const Tensor weight = root.matmul(root.t());
    const Tensor flat = summands_.flatten(1);                                                   // [n, D D]
    const Tensor normal = flat.matmul(square.matmul(summands_).matmul(weight).flatten(1).t());  // [n, n]
    const Tensor right = result->query.t().matmul(queries).matmul(weight).flatten(1);           // [H, D D]
    const Tensor numbers = divided_by_square(right.matmul(flat.t()), normal);                   // [H, n]
    result->maps = numbers.matmul(flat).view({-1, D_, D_});
  }

  static constexpr double kCutOff = 1e-9;

  int64_t D_;
  SharedQueryOptions map_;
  Tensor summands_;
};

// The key map that does best with these queries, [F, H, E, d]: P_h^H q_h summed, divided by q_h^H q_h summed.
Tensor best_key(const HeadSlices& slices, const Tensor& queries) {
  const Tensor right = slices.key.matmul(at::adjoint(slices.query).matmul(queries)).sum(1);
  const Tensor square = at::adjoint(queries).matmul(queries).sum(1);
  return at::adjoint(solved(square, at::adjoint(right))).unsqueeze(1);
}

// Tells whether maps hold those that multiply what a rotation leaves alone: single dimensions, or turning pairs.
bool is_multiplied(QueryMap map, bool turning) {
  return map == QueryMap::kBlocks || map == (turning ? QueryMap::kComplex : QueryMap::kDiagonal);
}

// The decomposition that collaborative attention of the same width holds.
MappedQueries multiplied_queries(const HeadSlices& slices, int64_t width, const DecompositionOptions& decomposition,
                                 const DecompositionProgress& progress) {
  const bool turning = slices.key.is_complex();
  const int64_t rank = turning ? 1 : width;
  const SharedFactors f = widened(decompose(slices, rank, decomposition, progress).factors, rank);
  return {.query = as_real_maps(f.query.unsqueeze(1))[0],
          .maps = turning ? turning_matrices(f.mixing.squeeze(2).t()) : at::diag_embed(f.mixing[0]),
          .key = f.key.unsqueeze(1)};
}

// R with R R^T the square of the key map, in the order of the columns of real maps.
Tensor weight_of_key(const Tensor& key) {
  if (!key.is_complex()) return gram_root(key)[0][0];
  const Tensor lengths = at::real(key * key.conj()).sum(2).sqrt().flatten();  // [F]
  return at::diag(lengths.repeat({2}));
}

}  // namespace

MappedQueries mapped_queries(const HeadSlices& slices, int64_t width, const SharedQueryOptions& map,
                             const DecompositionOptions& decomposition, const DecompositionProgress& progress) {
  const bool turning = slices.key.is_complex();
  const int64_t H = slices.key.size(1);
  const MapsOfQueries maps(width, map);
  MappedQueries result;
  if (is_multiplied(map.map, turning)) result = multiplied_queries(slices, width, decomposition, progress);
  if (!result.key.defined()) result.key = pooled(slices, 1, turning ? 1 : width, Pooling::kLeastSquares).key;
  for (int i = 0; i < kSweepsOfMaps; ++i) {
    const Tensor best = best_queries(slices, result.key.expand({-1, H, -1, -1}));
    maps.fit(as_real_maps(best), weight_of_key(result.key), &result);
    result.key = best_key(slices, as_slices(result.query.matmul(result.maps), turning));
  }
  return result;
}

Tensor numbers_of_maps(const Tensor& maps, QueryMap map) {
  const int64_t half = maps.size(1) / 2;
  const auto part = [&](int64_t row, int64_t column) {
    return maps.slice(1, row * half, (row + 1) * half).slice(2, column * half, (column + 1) * half).diagonal(0, 1, 2);
  };
  if (map == QueryMap::kDiagonal) return maps.diagonal(0, 1, 2) - 1;
  if (map == QueryMap::kComplex) return at::cat({part(0, 0), part(0, 1)}, 1);
  const Tensor first = at::cat({part(0, 0), part(1, 0)}, 1), second = at::cat({part(0, 1), part(1, 1)}, 1);
  return at::stack({first, second}, 1);  // what makes the first and the second dimension of a pair
}

}  // namespace headshare
