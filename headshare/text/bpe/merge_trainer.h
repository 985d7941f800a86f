// Learns merges from counted words, for byte-level BPE and WordPiece.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headshare/text/bpe/bpe_merger.h"

namespace headshare {

struct WordHash {
  using is_transparent = void;  // looks up string views without a copy
  size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
};
using WordCounts = std::unordered_map<std::string, int64_t, WordHash, std::equal_to<>>;

// Counts one more occurrence of `word`.
void add_word(std::string_view word, WordCounts* counts);

// These are distinct words as their first tokens, one word after another.
struct TokenWords {
  std::vector<int32_t> ids;
  std::vector<uint32_t> lengths;  // of each word, in tokens
  std::vector<int64_t> counts;    // of each word, in the text
};

struct MergeTraining {
  int64_t vocabulary_size = 0;  // merging stops at this many tokens
  int64_t min_count = 1;        // a pair must occur this often to be merged
  size_t first_ordinary = 0;    // tokens before this one are special: no merge makes them
  std::string prefix;           // what the right token of a pair loses in the merged token's text
};

// Merges the most frequent pair of adjacent tokens, again and again (Sennrich et al. 2016), in the
// order of Hugging Face's BpeTrainer: the most frequent first, ties by the smaller left id, then the
// smaller right id. New tokens are appended to `tokens`. Pair counts are updated where a merge
// changes them, so the work is that of the occurrences merged, whatever the length of the words.
// The result does not depend on the order of `words`. Throws Error for 2^32 tokens or more.
std::vector<TokenMerge> learn_merges(const TokenWords& words, const MergeTraining& training,
                                     std::vector<std::string>* tokens);

}  // namespace headshare
