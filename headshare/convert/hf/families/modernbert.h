// ModernBERT as Hugging Face transformers configures and stores it: local windows in most layers, rotary positions,
// gated feed-forward parts, norms before each part.
#pragma once

#include "headshare/convert/hf/model_type.h"

namespace headshare {

HfModelType modernbert_type();

}  // namespace headshare
