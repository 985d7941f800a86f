// These functions find the shape of a model from its options alone, so that its costs are known without its weights.
#pragma once

#include "headshare/convert/hf/shape.h"

namespace headshare {

// Reads what a headshare model or run directory, a Hugging Face directory or its config.json says. Throws Error as
// read_options() and read_hf_shape() do.
HfShape read_shape(const fs::path& path);

// Makes `options` ask for the costs of a model of that shape.
void take_shape(const HfShape& shape, CostOptions* options);

}  // namespace headshare
