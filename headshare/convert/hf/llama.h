// Llama, Mistral and Qwen2 as Hugging Face transformers configures them (models/llama/configuration_llama.py and so
// on): RMS norms before each part, rotary positions, a gated feed-forward part, keys and values in groups.
#pragma once

#include "headshare/convert/hf/shape.h"

namespace headshare {

// The shape of LlamaForCausalLM, MistralForCausalLM or Qwen2ForCausalLM. Throws Error for a missing or impossible
// value, naming the key.
HfShape llama_shape(const HfConfig& config, const std::string& model_type);

}  // namespace headshare
