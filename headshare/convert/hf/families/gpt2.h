// GPT-2 as Hugging Face transformers stores it (models/gpt2/modeling_gpt2.py, GPT2LMHeadModel).
#pragma once

#include "headshare/convert/hf/model_type.h"

namespace headshare {

// Our decoder of scheme mha with learned positions and biases everywhere, in both directions; a decoder without biases,
// or with sinusoidal positions or none, goes out with zeros and a table. Its linear layers (Conv1D) are [in, out] and
// c_attn holds queries, keys and values side by side, so that they are cut and transposed. Names stand with or without
// the prefix "transformer."; causal masks among the tensors are left out; a tied lm_head must equal wte.
// scale_attn_by_inverse_layer_idx becomes a factor on the queries of each layer.
HfModelType gpt2_type();

}  // namespace headshare
