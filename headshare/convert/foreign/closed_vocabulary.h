// An encoder that hashes words as one with a table, for a closed list of words: what programs without hashes can read.
#pragma once

#include <string>
#include <vector>

#include "headshare/models/encoder.h"

namespace headshare {

struct WordList {
  std::vector<std::string> words;  // lower-cased, each once, in the order of the file
  int64_t repeated = 0;            // lines whose word stood before them
};

// A word a line, by the rule of text/hash/word_or_symbol.h; blank lines are passed over. Throws Error, naming the file
// and the line, for a line of several words, one of more than 65,536 bytes, one that is not UTF-8, and a list without
// words.
WordList read_word_list(const std::string& file);

// The options of the encoder that close_vocabulary() makes of one that hashes words.
EncoderOptions closed_options(const EncoderOptions& hashed, const std::vector<std::string>& words);

// The encoder, in evaluation mode, whose table holds what `hashed` computes for the special tokens (rows 0 .. 4) and
// then for each of the words; all else is copied. `tokenizer` is the one that `hashed` reads words with.
Encoder close_vocabulary(const Encoder& hashed, const Tokenizer& tokenizer, const std::vector<std::string>& words);

}  // namespace headshare
