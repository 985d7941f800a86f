// Rotary positions in a config.json. transformers 5 keeps all about them in rope_parameters; older files have
// rope_theta and rope_scaling, which counts first.
#pragma once

#include <string>

#include "headshare/convert/hf/config.h"

namespace headshare {

// Sets the rotary options. Returns "" or a sentence, led by file and key, that says why no model of ours turns queries
// and keys so: it then has the base alone, which is enough to count costs. Throws Error for values that none can have.
std::string read_rotation(const HfConfig& config, DecoderOptions* options);

// Writes what both versions of transformers read.
void write_rotation(const DecoderOptions& options, nlohmann::json* config);

}  // namespace headshare
