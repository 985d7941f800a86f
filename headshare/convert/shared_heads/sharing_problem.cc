#include "headshare/convert/shared_heads/sharing_problem.h"

#include <ATen/ATen.h>

#include "headshare/attention/scheme_record.h"
#include "headshare/convert/collaborative/rotary_maps.h"
#include "headshare/convert/shared_heads/conversion_record.h"

namespace headshare {
namespace {

ProblemForm form_of(const AttentionOptions& target) {
  const bool biased = target.projection_bias;
  // One map for keys and values needs one weight for both, about the mean only where both are.
  const bool keys_are_values = conversion_record(target.scheme).keys_are_values;
  return {.frequencies = target.rotary ? compared_width(target) / 2 : 0,
          .query_bias = biased,
          .key_bias = biased && target.rotary,
          .key_about_mean = !target.rotary && (biased || !keys_are_values)};
}

}  // namespace

SharingProblem::SharingProblem(const HeadMaps& maps, const LayerInputs& inputs, const AttentionOptions& target,
                               InputWeights kind)
    : maps_(maps), target_(target), inputs_(inputs), form_(form_of(target)), layer_(maps, form_, inputs, kind) {
  value_weights_ = input_weights(inputs.key, /*about_mean=*/target.projection_bias, /*constant=*/false, kind);
}

HeadSlices SharingProblem::values() const {
  return {maps_.output.transpose(1, 2).unsqueeze(0), weighed(value_weights_, maps_.value).unsqueeze(0)};
}

HeadSlices SharingProblem::scores_in(const SharingProblem& other, const HeadSlices& mine) const {
  return {weighed(other.layer_.query_weights(), unweighed(layer_.query_weights(), mine.query)),
          weighed(other.layer_.key_weights(), unweighed(layer_.key_weights(), mine.key))};
}

HeadSlices SharingProblem::values_in(const SharingProblem& other, const HeadSlices& mine) const {
  return {mine.query, weighed(other.value_weights_, unweighed(value_weights_, mine.key))};
}

Tensor SharingProblem::set_map(const std::string& name, const Tensor& maps, bool biased, SchemeFiller* filler) const {
  const int64_t E = target_.d_model;
  filler->set(name + ".weight", maps.slice(1, 0, E).transpose(1, 2));  // [n r, E]
  if (biased) filler->set(name + ".bias", maps.slice(1, E));
  return maps;
}

Tensor SharingProblem::set_query(const Tensor& maps, SchemeFiller* filler) const {
  return set_map("query", as_real_maps(unweighed(layer_.query_weights(), maps)), form_.query_bias, filler);
}

Tensor SharingProblem::set_key(const std::string& name, const Tensor& maps, SchemeFiller* filler) const {
  return set_map(name, as_real_maps(unweighed(layer_.key_weights(), maps)), form_.key_bias, filler);
}

void SharingProblem::set_values(const SharedMaps& values, SchemeFiller* filler) const {
  const Tensor value = value_maps(values.key[0]);  // [G, E, D]
  filler->set("value.weight", value.transpose(1, 2));
  set_output(value, Tensor(), values.query[0].transpose(1, 2), filler);
}

Tensor SharingProblem::mean_value(const Tensor& value, const Tensor& bias) const {
  Tensor mean = at::zeros({value.size(0), value.size(2)}, value.options());
  if (inputs_.key != nullptr) mean = value.transpose(1, 2).matmul(inputs_.key->mean);
  return bias.defined() ? mean + bias : mean;
}

void SharingProblem::set_output(const Tensor& value, const Tensor& bias, const Tensor& output,
                                SchemeFiller* filler) const {
  filler->set("output.weight", output.flatten(0, 1).t());  // [E, H D]
  if (!filler->has("output.bias")) return;
  const auto through = [](const Tensor& values, const Tensor& maps) {
    return values.unsqueeze(1).matmul(maps).sum(0).squeeze(0);  // [E]
  };
  const Tensor shared = mean_value(value, bias).repeat_interleave(output.size(0) / value.size(0), 0);
  filler->set("output.bias", maps_.output_bias + through(mean_value(maps_.value, maps_.value_bias), maps_.output) -
                                 through(shared, output));
}

void SharingProblem::set_content_bias(SchemeFiller* filler) const {
  if (filler->has("content_bias")) filler->set("content_bias", maps_.content_bias);
}

SharedMaps shared_values(const SharingProblem& problem) {
  return pooled(problem.values(), 1, problem.width(), Pooling::kLeastSquares);
}

}  // namespace headshare
