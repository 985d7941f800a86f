#include "headshare/convert/collaborative/head_maps.h"

#include <ATen/ATen.h>

#include "headshare/attention/scheme_record.h"
#include "headshare/attention/schemes/mla.h"
#include "headshare/base/error.h"
#include "headshare/convert/collaborative/model_change.h"

namespace headshare {
namespace {

void check_values(const Scheme& scheme, const std::string& layer) {
  NamedTensors tensors;
  for (const Declared& one : declared_parameters(scheme)) tensors.emplace(one.name, one.tensor);
  check_finite(tensors, layer);
}

void check_has_outputs(const AttentionOptions& options, const std::string& layer) {
  HS_CHECK(options.gate == OutputGate::kNone, layer,
           ": an output gate (output-gate) multiplies the elements of each head, which a conversion would mix");
  HS_CHECK(!options.sinks, layer, ": attention sinks (attention-sinks) weigh the biases that a conversion moves");
  HS_CHECK(!options.kv_shift && !options.key_offset, layer,
           ": keys and values meet those of the token before (kv-shift, key-offset), and no map of a single token says "
           "what heads compare");
}

void check_all_there(const AttentionOptions& options, const std::string& layer) {
  HS_CHECK(options.scheme != "sha", layer, ": the heads of sha are one head, which leaves nothing to share");
  HS_CHECK(!options.rotary || rotated_width(options) == compared_width(options), layer, ": rotary positions turn only ",
           rotated_width(options),
           " dimensions of each head (rotary-dimensions), and heads are compared and "
           "converted as if they turn as a whole; exact folds (--exact) keep such rotations");
}

// The rows of 0 and of each unit vector: [1 + E, 1, E].
Tensor unit_rows(int64_t E) {
  const Tensor zero = at::zeros({1, E}, at::kDouble);
  return at::cat({zero, at::eye(E, zero.options())}).unsqueeze(1);
}

// `answers`, [1 + E, heads, width], are the values of an affine function for unit_rows(). The result is its matrix and
// its value at 0, with a copy for each head.
std::pair<Tensor, Tensor> matrix_and_offset(const Tensor& answers, int64_t heads) {
  const Tensor each = answers.repeat_interleave(heads / answers.size(1), 1);
  const Tensor offset = each[0];
  return {(each.slice(0, 1) - offset).transpose(0, 1).contiguous(), offset.contiguous()};
}

// The merged output for zero heads and for each unit vector of them.
void read_output(const Scheme& scheme, const Posed& posed, HeadMaps* maps) {
  const int64_t H = scheme.options().heads, Dv = posed.problem.value.size(3);
  const Tensor heads = unit_rows(H * Dv).view({1 + H * Dv, H, 1, Dv});
  const auto [matrix, offset] = matrix_and_offset(scheme.merge(posed, heads, /*live=*/Tensor()), 1);
  maps->output = matrix[0].view({H, Dv, -1});
  maps->output_bias = offset[0];
}

}  // namespace

std::string why_not_by_weights(const AttentionOptions& options) {
  const std::string way_out = " To have heads that share, train a model of the scheme, with this one as its --teacher";
  if (options.qk_norm) {
    return "a model with normed queries and keys (qk-norm) has no query and key maps: the norm stands between the "
           "projection and the comparison." +
           way_out;
  }
  const MlaOptions& mla = options.own.get<MlaOptions>();
  if (options.scheme != "mla" || !(mla.kv_norm || mla.query_latent)) return "";
  return "a model with normed latent vectors (mla) has no query, key and value maps: the norm stands between two "
         "projections." +
         way_out;
}

void check_comparable(const Scheme& scheme, const std::string& layer) {
  check_all_there(scheme.options(), layer);
  check_has_outputs(scheme.options(), layer);
  check_values(scheme, layer);
}

HeadMaps head_maps(const Scheme& scheme, const std::string& layer) {
  check_all_there(scheme.options(), layer);
  return repeated_head_maps(scheme, layer);
}

HeadMaps repeated_head_maps(const Scheme& scheme, const std::string& layer) {
  const at::NoGradGuard no_grad;
  const std::string reason = why_not_by_weights(scheme.options());
  HS_CHECK(reason.empty(), layer, ": ", reason);
  check_has_outputs(scheme.options(), layer);
  check_values(scheme, layer);
  AttentionOptions unscaled = scheme.options();
  // The factor on cosines stays out of the maps, because the result multiplies by it again.
  unscaled.rotary_scaling = {};
  const std::shared_ptr<Scheme> exact = in_double(scheme, unscaled);
  const int64_t H = scheme.options().heads;
  const Tensor rows = unit_rows(scheme.options().d_model);
  // Position 0, where nothing is turned.
  const Posed posed = exact->posed(exact->project_queries(rows, 0), exact->remember(rows, 0), Form::kManyQueries);
  const HeadProblem& problem = posed.problem;
  const bool has_all = problem.heads == H || problem.heads == 1;
  HS_CHECK(has_all && problem.value.size(3) == *scheme.options().head_width, layer, ": the heads of ",
           scheme.options().scheme, " read whole hidden states and cannot be taken apart");
  const Posed later = exact->posed(exact->project_queries(rows, 1), exact->remember(rows, 1), Form::kManyQueries);
  HS_CHECK(at::equal(later.problem.value, problem.value), layer, ": rotary positions turn the values of ",
           scheme.options().scheme, " here, too, which no map of values does");
  HeadMaps maps;
  std::tie(maps.query, maps.query_bias) = matrix_and_offset(problem.query.squeeze(2), H);
  if (problem.query_shift.defined()) maps.query_bias = maps.query_bias + problem.query_shift;
  std::tie(maps.key, maps.key_bias) = matrix_and_offset(problem.key.squeeze(2), H);
  maps.content_bias = at::zeros({H, scheme.options().d_model}, at::kDouble);
  if (problem.key_bias.defined()) maps.content_bias = matrix_and_offset(problem.key_bias, H).first.squeeze(2);
  std::tie(maps.value, maps.value_bias) = matrix_and_offset(problem.value.squeeze(2), H);
  read_output(*exact, posed, &maps);
  return maps;
}

}  // namespace headshare
