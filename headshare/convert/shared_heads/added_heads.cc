#include "headshare/convert/shared_heads/added_heads.h"

#include <ATen/ATen.h>

#include "headshare/convert/shared_heads/shared_maps.h"

namespace headshare {
namespace {

constexpr int kRoundsOfAdded = 40;

// A map with the constant as a last row: [F, H, E, d] or [F, 1, E, d], [F, H, d] -> [F, H, E + 1, d].
Tensor with_constant(const Tensor& map, const Tensor& constant) {
  if (!constant.defined()) return map;
  const Tensor all = map.expand({-1, constant.size(1), -1, -1});
  return at::cat({all, constant.unsqueeze(2)}, 2);
}

// X with X g = b, g Hermitian and perhaps singular: [.., n, d], [.., d, d].
Tensor divided_by_gram(const Tensor& b, const Tensor& g) {
  const Tensor size = at::real(g.diagonal(0, -2, -1)).mean(-1).clamp_min(kLeastSize).unsqueeze(-1).unsqueeze(-1);
  constexpr double kRidge = 1e-12;
  return at::adjoint(at::linalg_solve(g + kRidge * size * at::eye(g.size(-1), g.options()), at::adjoint(b)));
}

// The shared map and the constants of one side that do best with the other side, `fixed`, for `heads` with maps
// [F, H, E, d] and constants [F, H, d] whose other side is `other`.
std::pair<Tensor, Tensor> best_side(const Tensor& maps, const Tensor& constants, const Tensor& other,
                                    const Tensor& fixed) {
  const Tensor common = at::adjoint(other).matmul(fixed);                                   // [F, H, d, d]
  const Tensor gram = at::adjoint(fixed).matmul(fixed).expand({-1, maps.size(1), -1, -1});  // [F, H, d, d]
  const Tensor map = divided_by_gram(maps.matmul(common).sum(1), gram.sum(1));
  if (!constants.defined()) return {map, Tensor()};
  return {map, divided_by_gram(constants.unsqueeze(2).matmul(common), gram).squeeze(2)};
}

}  // namespace

AddedHeads added_heads(const HeadSlices& slices, int64_t query_rows, int64_t key_rows) {
  const auto constants = [](const Tensor& x, int64_t rows) { return x.size(2) > rows ? x.select(2, rows) : Tensor(); };
  const Tensor A = slices.query.slice(2, 0, query_rows), a = constants(slices.query, query_rows);
  const Tensor B = slices.key.slice(2, 0, key_rows), b = constants(slices.key, key_rows);
  // The heads' sum is one head as wide as all of them.
  const auto side_by_side = [](const Tensor& x) { return x.transpose(1, 2).flatten(2).unsqueeze(1); };
  const HeadSlices sum{side_by_side(A) / static_cast<double>(A.size(1)), side_by_side(B)};
  AddedHeads result;
  result.key = pooled(sum, 1, A.size(3), Pooling::kLeastSquares).key.squeeze(1);
  result.key_constant = b;
  for (int i = 0; i < kRoundsOfAdded; ++i) {
    const Tensor key = with_constant(result.key.unsqueeze(1), result.key_constant);
    std::tie(result.query, result.query_constant) = best_side(A, a, slices.key, key);
    const Tensor query = with_constant(result.query.unsqueeze(1), result.query_constant);
    std::tie(result.key, result.key_constant) = best_side(B, b, slices.query, query);
  }
  return result;
}

}  // namespace headshare
