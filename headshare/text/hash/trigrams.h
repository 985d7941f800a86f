// Returns the trigrams of a word's bytes, and the rows of a table that they pick (T-FREE: Deiseroth et al., EMNLP
// 2024).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace headshare {

// A longer word has the trigrams of its first so many bytes: they bound the memory that a word takes.
inline constexpr size_t kTrigramBytes = 1024;

// Returns the different trigrams of " word ", ascending, each as the number b_0 + 256 b_1 + 65536 b_2 of its bytes; at
// least one for a word that is not empty.
std::vector<int32_t> word_trigrams(std::string_view word);

// Returns the `count` different rows, ascending, of a table of `rows` rows that a trigram picks: for k = 0 .. count - 1
// the MD5 digest of the text "trigram_k_j", read as a 128-bit number, modulo `rows`, with the first j = 0, 1, ... whose
// row is new. Requires count <= rows. T-FREE gives trigrams with ASCII capitals some rows of their lower-cased form;
// words are lower-case here.
std::vector<int64_t> trigram_rows(int32_t trigram, int64_t count, int64_t rows);

}  // namespace headshare
