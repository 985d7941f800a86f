#include "headshare/convert/foreign/rotary_slowdown.h"

#include <ATen/ATen.h>

#include "headshare/attention/rotary.h"
#include "headshare/attention/scheme_record.h"

namespace headshare {

Tensor rotary_slowdown(const AttentionOptions& resolved) {
  const int64_t width = compared_width(resolved);
  const Tensor plain = rotary_frequencies(width, resolved.rotary_base, {}).frequencies;
  const Tensor scaled = rotary_frequencies(width, resolved.rotary_base, resolved.rotary_scaling).frequencies;
  return (plain / scaled).to(at::kFloat);
}

bool is_slowdown(const Tensor& theirs, const AttentionOptions& resolved) {
  const Tensor ours = rotary_slowdown(resolved);
  return theirs.scalar_type() == at::kFloat && theirs.sizes() == ours.sizes() &&
         at::allclose(theirs, ours, /*rtol=*/1e-5, /*atol=*/0);
}

nlohmann::json rotary_scaling_note(const RotaryScaling& scaling) {
  RotaryScaling copy = scaling;
  return to_json(fields(copy));
}

RotaryScaling noted_rotary_scaling(const nlohmann::json& note, const std::string& where) {
  RotaryScaling scaling;
  Fields list = fields(scaling);
  from_json(list, note, where);
  return scaling;
}

}  // namespace headshare
