// Engines apply scaled rotations as a factor for each pair of dimensions, and one on cosines and sines.
#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>
#include <string>

#include "headshare/attention/options.h"

namespace headshare {

using at::Tensor;

// Returns how many times slower each pair of a head turns than without --rotary-scaling: float32 [D / 2].
Tensor rotary_slowdown(const AttentionOptions& resolved);

// Tells whether a file's factors are these; rounding may differ.
bool is_slowdown(const Tensor& theirs, const AttentionOptions& resolved);

// Writes the options of --rotary-scaling beside what an engine reads, which does not say all of them; reads them back.
// Throws Error, led by `where`, for what is none.
nlohmann::json rotary_scaling_note(const RotaryScaling& scaling);
RotaryScaling noted_rotary_scaling(const nlohmann::json& note, const std::string& where);

}  // namespace headshare
