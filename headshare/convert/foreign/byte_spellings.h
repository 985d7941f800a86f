// The vocabulary of a byte-level tokenizer as other programs write it: bytes as letters (text/bpe/byte_alphabet.h).
#pragma once

#include <string>
#include <vector>

#include "headshare/convert/foreign/model_to_write.h"

namespace headshare {

// This is the way out where a tokenizer cannot be written.
inline constexpr const char* kWithoutTokenizer =
    "; move tokenizer.json out of the checkpoint to write the model without a tokenizer";

// The tokenizer's vocabulary, of bytes or of a byte-level BPE. Throws Error, naming `format`, for other kinds.
Vocabulary byte_level_vocabulary(const Tokenizer& tokenizer, const std::string& format);

// A special or added token as it is, another token in the alphabet of bytes.
std::string byte_spelling(const VocabularyToken& token);

// A spelling for each token of the model; those of a BPE over characters ("character-bpe") are as they are. Ids that
// the tokenizer does not have, or all of them where there is none, are `before` + id + `behind`.
std::vector<std::string> byte_spellings(const ModelToWrite& model, const std::string& format, const std::string& before,
                                        const std::string& behind);

}  // namespace headshare
