#include "headshare/convert/shared_heads/shared_layer.h"

#include <ATen/ATen.h>

#include <numeric>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/convert/collaborative/collaborative.h"
#include "headshare/convert/shared_heads/conversion_record.h"
#include "headshare/convert/shared_heads/head_groups.h"
#include "headshare/convert/shared_heads/sharing_problem.h"

namespace headshare {
namespace {

// The heads in another order: position i has head order[i]. It changes nothing that a layer computes.
HeadMaps reordered(const HeadMaps& maps, const std::vector<int64_t>& order) {
  const Tensor index = at::tensor(order, at::kLong);
  const auto take = [&index](const Tensor& x) { return x.index_select(0, index); };
  return {take(maps.query), take(maps.query_bias), take(maps.key),    take(maps.key_bias), take(maps.content_bias),
          take(maps.value), take(maps.value_bias), take(maps.output), maps.output_bias};
}

std::vector<int64_t> unchanged_order(int64_t heads) {
  std::vector<int64_t> order(static_cast<size_t>(heads));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Heads that share stand side by side. ALiBi's slopes belong to places, so that there heads stay where they are.
std::vector<int64_t> similar_order(const SharingProblem& problem, const ConversionRecord& conversion) {
  const AttentionOptions& target = problem.target();
  const int64_t groups = conversion.groups == nullptr ? 1 : conversion.groups(target);
  if (groups == 1 || target.alibi) return unchanged_order(target.heads);
  return similar_heads(pair_losses(problem.scores(), problem.values()), groups);
}

// The error that a pooling of the heads in this order would have.
SharedError error_of(const HeadMaps& heads, const SharingTask& task, const AttentionOptions& target, Pooling pooling) {
  const int64_t groups = conversion_record(target.scheme).groups(target);
  const SharingProblem problem(heads, task.inputs, target);
  const SharingProblem judged(heads, task.inputs, target, InputWeights::kOwn);
  const auto shared = [&](const HeadSlices& slices) {
    return expanded(pooled(slices, groups, slices.key.size(3), pooling));
  };
  return {relative_change(judged.scores(), problem.scores_in(judged, shared(problem.scores()))),
          relative_change(judged.values(), problem.values_in(judged, shared(problem.values())))};
}

// The error of the weights as they are stored: the layer is asked for its heads, whatever its scheme.
SharedError stored_error(const HeadMaps& source, const LayerInputs& inputs, const Scheme& target) {
  const HeadMaps stored = head_maps(target, "the converted layer");
  const AttentionOptions& options = target.options();
  const ProblemForm form{.frequencies = options.rotary ? compared_width(options) / 2 : 0,
                         .query_bias = true,
                         .key_bias = options.rotary,
                         .key_about_mean = !options.rotary};
  const LayerProblem layer(source, form, inputs, InputWeights::kOwn);
  const Tensor weights =
      input_weights(inputs.key, /*about_mean=*/options.projection_bias, /*constant=*/false, InputWeights::kOwn);
  const auto values = [&weights](const HeadMaps& maps) {
    return HeadSlices{maps.output.transpose(1, 2).unsqueeze(0), weighed(weights, maps.value).unsqueeze(0)};
  };
  return {relative_change(layer.slices(), layer.slices_of(stored)), relative_change(values(source), values(stored))};
}

std::vector<std::vector<int64_t>> in_groups(const std::vector<int64_t>& order, int64_t groups) {
  std::vector<std::vector<int64_t>> all;
  const auto each = static_cast<int64_t>(order.size()) / groups;
  for (auto from = order.begin(); from != order.end(); from += each) all.emplace_back(from, from + each);
  return all;
}

}  // namespace

std::string name_of(const SharedScheme& to) {
  std::string name = to.scheme;
  if (!to.variant.empty()) name += ":" + to.variant;
  if (to.size) name += join_text(":", *to.size);
  return name;
}

bool needs_biases(const HeadMaps& maps, const AttentionOptions& source) {
  AttentionOptions without = source;
  without.content_bias = false;  // which the target keeps: it holds nothing else
  const NeededBiases needed = needed_biases(maps, without);
  return needed.projection || needed.content;
}

AttentionOptions converted_options(const AttentionOptions& source, const SharedScheme& to, bool biased) {
  const ConversionRecord& conversion = conversion_record(to.scheme);
  const int64_t keys = compared_width(source);
  const bool equal = keys == *source.head_width;
  HS_CHECK(!source.rotary || !scheme_record(source.scheme).shares_key_width,
           "a collaborative model with rotary positions mixes what they turn, which heads of other schemes cannot; "
           "convert the model that it was made from");
  HS_CHECK(equal || !source.rotary,
           "heads with rotary positions can share keys only where these are as wide as values, not ", keys, " and ",
           *source.head_width, "; only --to collaborative takes such a model");
  HS_CHECK(equal || to.pooling == Pooling::kLeastSquares, "keys of width ", keys,
           " cannot be pooled to the width of values, ", *source.head_width, ", as means; leave --pooling out");
  HS_CHECK(to.variant.empty() || conversion.variants, to.scheme, " has no kinds to choose from; leave ", to.variant,
           " out");
  HS_CHECK(!to.size || conversion.size, to.scheme, " has no size that can be chosen; leave ", to.size.value_or(0),
           " out");
  AttentionOptions options = source;
  options.scheme = conversion.scheme;
  options.key_width.reset();
  for (const auto& one : scheme_records()) {
    if (one->options.reset != nullptr) one->options.reset(&options);
  }
  if (conversion.prepare != nullptr) conversion.prepare(source, &options);
  if (!to.variant.empty()) conversion.variants->set(to.variant, &options);
  if (to.size) conversion.size->set(*to.size, &options);
  options.projection_bias = biased;
  return resolve(options);
}

SharedResult fill_shared(const SharingTask& task, Scheme* target) {
  const at::NoGradGuard no_grad;
  const AttentionOptions& options = target->options();
  const ConversionRecord& conversion = conversion_record(options.scheme);
  const std::vector<int64_t> similar = similar_order(SharingProblem(task.maps, task.inputs, options), conversion);
  const std::vector<int64_t> order = task.pooling == Pooling::kMean ? unchanged_order(options.heads) : similar;
  const HeadMaps heads = reordered(task.maps, order);
  const SharingProblem problem(heads, task.inputs, options);
  SchemeFiller filler(target);
  problem.set_content_bias(&filler);
  conversion.fill(problem, task, &filler);
  SharedResult result{.error = stored_error(heads, task.inputs, *target)};
  if (conversion.groups == nullptr) return result;
  if (conversion.size) result.groups = in_groups(order, conversion.groups(options));
  if (task.other_poolings && heads.key.size(2) == problem.width()) {
    result.plain_mean = error_of(task.maps, task, options, Pooling::kMean);
    result.aligned_mean = error_of(reordered(task.maps, similar), task, options, Pooling::kAligned);
  }
  return result;
}

}  // namespace headshare
