// The shape of a model that a path names, from its options alone: what it costs can be told without its weights.
#pragma once

#include "headshare/convert/hf/shape.h"

namespace headshare {

// Reads what a headshare model or run directory, a Hugging Face directory or its config.json says. Throws Error as
// read_options() and read_hf_shape() do.
HfShape read_shape(const fs::path& path);

// Makes the model of that shape the one that is asked about.
void take_shape(const HfShape& shape, CostOptions* options);

}  // namespace headshare
