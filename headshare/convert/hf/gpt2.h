// GPT-2 as Hugging Face transformers stores it (models/gpt2/modeling_gpt2.py, GPT2LMHeadModel).
#pragma once

#include <memory>

#include "headshare/convert/foreign.h"
#include "headshare/convert/hf/directory.h"

namespace headshare {

// The options of a configuration. Throws Error for one that we cannot reproduce, naming the key.
DecoderOptions gpt2_options(const HfConfig& config);

// The model as our decoder: `mha` with learned positions and biases everywhere. Its linear layers
// (Conv1D) are [in, out] and c_attn holds queries, keys and values side by side, so they are cut and
// transposed. Names stand with or without the prefix "transformer."; causal masks among the tensors
// are left out; a tied lm_head must equal wte. scale_attn_by_inverse_layer_idx becomes a factor on the
// queries of each layer. Throws Error for a configuration we cannot reproduce, naming the key, and
// for tensors that are missing, unknown or of another shape.
ForeignModel map_gpt2(const std::shared_ptr<const HfDirectory>& directory);

}  // namespace headshare
