// A tokenizer as Hugging Face transformers reads it.
#pragma once

#include "headshare/base/files/file.h"
#include "headshare/convert/foreign/model_to_write.h"

namespace headshare {

// Writes tokenizer.json and tokenizer_config.json for AutoTokenizer, which then gives the same ids between [CLS] and
// [SEP], and the segments of a pair where the model tells segments apart. Where the model has a row for each of a list
// of words, ids are the special tokens' and then the words', and other words are <unk>. Throws Error for kinds that
// Hugging Face's format does not have, and for a pair of tokenizers.
void write_hf_tokenizer(const fs::path& directory, const ModelToWrite& model);

}  // namespace headshare
