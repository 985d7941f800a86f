// The library registers these classes with torch.
#pragma once

#include <torch/library.h>

namespace headshare {

void register_tokenizer(torch::Library* library);
void register_attention_layer(torch::Library* library);
void register_model(torch::Library* library);  // names Tokenizer, which is registered before

}  // namespace headshare
