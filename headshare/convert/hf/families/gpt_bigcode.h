// GPTBigCode as Hugging Face transformers stores it (models/gpt_bigcode/modeling_gpt_bigcode.py,
// GPTBigCodeForCausalLM).
#pragma once

#include "headshare/convert/hf/model_type.h"

namespace headshare {

// Our decoder of scheme mqa in GPT-2's form, in both directions: all heads share one key and one value. Its linear
// layers are [out, in], and c_attn holds the queries of all heads above the key and the value. Models with multi_query
// false, in which each head has its rows of all three, come in as scheme mha; nothing is written so.
HfModelType gpt_bigcode_type();

}  // namespace headshare
