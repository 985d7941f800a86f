// Learning the merges of byte-level BPE from counted words.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "headshare/text/bpe_merger.h"

namespace headshare {

struct WordHash {
  using is_transparent = void;  // looks up string views without a copy
  size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
};
using WordCounts = std::unordered_map<std::string, int64_t, WordHash, std::equal_to<>>;

// Counts one more occurrence of `word`.
void add_word(std::string_view word, WordCounts* counts);

struct BpeTrainingOptions {
  int64_t vocabulary_size = 0;  // with the 256 bytes and <|endoftext|>
  int64_t min_count = 1;        // a pair must occur this often to be merged
  bool end_of_text = true;      // <|endoftext|> as id 0
};

// Merges the most frequent pair of adjacent tokens, again and again (Sennrich et al. 2016), in the
// order of Hugging Face's BpeTrainer (train_tokenizer.h). Pair counts are updated where a merge
// changes them, so the work is that of the occurrences merged, whatever the length of the words.
// The result does not depend on the order of `counts`. Throws Error when vocabulary_size does not
// hold the 256 bytes, or the distinct words have 2^32 bytes.
BpeDefinition train_bpe(const WordCounts& counts, const BpeTrainingOptions& options);

}  // namespace headshare
