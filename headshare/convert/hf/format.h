// Directories of Hugging Face transformers as a format that is read and written.
#pragma once

#include "headshare/convert/foreign/foreign_format.h"

namespace headshare {

// Reads config.json with model.safetensors (or shards), by the row of hf/model_types.h that config.json names. Writes
// config.json, model.safetensors and the tokenizer, as the first row that has a place for the model.
ForeignFormat hf_format();

}  // namespace headshare
