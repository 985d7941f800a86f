// Answers what the normalisation of SentencePiece vocabularies asks of a character.
#pragma once

#include <cstdint>

namespace headshare {

// Answers are those of Hugging Face tokenizers, compared for every code point in tests/oracles/test_unigram.py:
// decompositions and marks of Unicode 9, whatever utf8proc is installed (docs/design/016).

// Writes the compatibility decomposition (NFKD), all the way; returns how many parts it has. A character without one is
// its own.
constexpr int kLongestCompatibility = 18;  // U+FDFA
int compatibility_decomposition(int32_t code_point, int32_t (&parts)[kLongestCompatibility]);

// Tells whether StripAccents drops a character: marks, nonspacing, spacing and enclosing.
bool is_combining_mark(int32_t code_point);

}  // namespace headshare
