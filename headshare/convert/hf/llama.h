// Llama, Mistral and Qwen2 as Hugging Face transformers configures them (models/llama/configuration_llama.py and so
// on): RMS norms before each part, rotary positions, a gated feed-forward part, keys and values in groups.
#pragma once

#include "headshare/convert/hf/model_type.h"

namespace headshare {

// The shapes of LlamaForCausalLM, MistralForCausalLM and Qwen2ForCausalLM; their tensors are not read.
HfModelType llama_type();
HfModelType mistral_type();
HfModelType qwen2_type();

}  // namespace headshare
