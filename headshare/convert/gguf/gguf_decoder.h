// Our decoders as llama.cpp's architectures `gpt2`, `starcoder` (the same graph, for old versions) and `llama`.
#pragma once

#include <string>
#include <vector>

#include "headshare/convert/foreign/foreign_model.h"
#include "headshare/convert/foreign/model_to_write.h"
#include "headshare/convert/gguf/gguf_file.h"

namespace headshare {

// The architectures by name.
const std::vector<std::string>& gguf_architectures();

// "" where a model of these options has a place in the architecture that it is written as; else the reason.
std::string why_not_gguf(const ModelOptions& options, const std::string& architecture);

// The architecture that a model is written as: the named one; else llama with rotary positions, and gpt2 without.
std::string gguf_architecture(const ModelOptions& options, const std::string& named);

// The file of a model that has a place: values, tokens and tensors. Throws Error for values that are not finite, and
// for tokenizers that are no byte-level BPE and not of bytes.
GgufFile gguf_of(const ModelToWrite& model, const std::string& architecture);

// The model that gguf_of() wrote, without its tokenizer.
ForeignModel model_of_gguf(const GgufFile& file);

}  // namespace headshare
