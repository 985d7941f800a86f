// A tokenizer as Hugging Face transformers reads it.
#pragma once

#include "headshare/base/file.h"
#include "headshare/models/options.h"
#include "headshare/text/tokenizer.h"

namespace headshare {

// Writes tokenizer.json and tokenizer_config.json for AutoTokenizer, which then gives the same ids between [CLS] and
// [SEP], and the segments of a pair where `model` tells segments apart. Throws Error for kinds that Hugging Face's
// format does not have.
void write_hf_tokenizer(const fs::path& directory, const Tokenizer& tokenizer, const EncoderOptions& model);

// The same for a tokenizer that hashes words, and a closed list of them: ids are the special tokens' and then the
// words', and other words are <unk>.
void write_hf_words(const fs::path& directory, const Tokenizer& tokenizer, const std::vector<std::string>& words,
                    const EncoderOptions& model);

}  // namespace headshare
