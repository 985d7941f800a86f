#include "headshare/analyze/seen_scores.h"

#include <ATen/ATen.h>

#include "headshare/convert/collaborative/collaborative.h"
#include "headshare/convert/collaborative/rotary_maps.h"

namespace headshare {
namespace {

// Turns vectors [N, H or fewer, 1, D] into problems [F, H, N, d].
Tensor seen_problems(const Tensor& vectors, const AttentionOptions& options) {
  const Tensor each = vectors.squeeze(2).repeat_interleave(options.heads / vectors.size(1), 1).transpose(0, 1);
  return options.rotary ? by_frequency(each, key_width_step(options) / 2) : each.unsqueeze(0);
}

}  // namespace

void SeenScores::add(const Scheme& scheme, const Tensor& x) {
  AttentionOptions options = scheme.options();
  options.rotary_scaling = {};  // it turns nothing at position 0; its factor on cosines is one of all scores
  const std::shared_ptr<Scheme> exact = in_double(scheme, options);
  // Each token stands alone at position 0, where nothing is turned.
  const Tensor rows = x.reshape({-1, 1, x.size(-1)}).to(at::kDouble);
  const Posed posed = exact->posed(exact->project_queries(rows, 0), exact->remember(rows, 0), Form::kManyQueries);
  Tensor query = posed.problem.query;
  if (posed.problem.query_shift.defined()) query = query + posed.problem.query_shift.unsqueeze(1);
  query_.add(seen_problems(query, options));
  key_.add(seen_problems(posed.problem.key, options));
  tokens_ += rows.size(0);
  heads_ = options.heads;
}

HeadSlices SeenScores::slices() const {
  const bool turned = key_.squares.is_complex();
  return {query_.root(tokens_, heads_, /*about_mean=*/false), key_.root(tokens_, heads_, /*about_mean=*/!turned)};
}

void SeenScores::Side::add(const Tensor& z) {
  const Tensor rows = z.transpose(1, 2).flatten(2);  // [F, N, H d]
  if (!sum.defined()) {
    sum = at::zeros({rows.size(0), rows.size(2)}, rows.options());
    squares = at::zeros({rows.size(0), rows.size(2), rows.size(2)}, rows.options());
  }
  sum += rows.sum(1);
  squares += at::adjoint(rows).matmul(rows);
}

Tensor SeenScores::Side::root(int64_t tokens, int64_t heads, bool about_mean) const {
  const auto n = static_cast<double>(tokens);
  Tensor second = squares / n;
  if (about_mean) second = second - (sum.conj().unsqueeze(2) * sum.unsqueeze(1)) / (n * n);
  const auto [values, vectors] = at::linalg_eigh(second);
  const Tensor root = values.clamp_min(0).sqrt().unsqueeze(2) * at::adjoint(vectors);  // root^H root = second
  return root.unflatten(2, {heads, -1}).transpose(1, 2).contiguous();                  // [F, H, H d, d]
}

}  // namespace headshare
