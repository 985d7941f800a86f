// Families of decoders of Llama's form (llama_form.h), as Hugging Face transformers stores their ForCausalLM classes
// (models/llama/modeling_llama.py and so on). Each has a file that says how it differs.
#pragma once

#include "headshare/convert/hf/model_type.h"

namespace headshare {

HfModelType gemma_type();  // the first version: norms multiply by 1 + weight, embeddings are scaled
HfModelType llama_type();
HfModelType mistral_type();  // its layers may attend to a window of tokens
HfModelType qwen2_type();    // and Qwen2.5: queries, keys and values have biases, the output has none
HfModelType qwen3_type();    // norms queries and keys

}  // namespace headshare
