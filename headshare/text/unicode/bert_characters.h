// Classifies characters as BERT's normalization asks for it.
#pragma once

#include <cstdint>

namespace headshare {

// Answers are those of Hugging Face tokenizers, compared for every code point in
// tests/oracles/test_wordpiece.py: categories of Unicode 8, combining classes and decompositions of
// Unicode 9, whatever utf8proc is installed; characters that got theirs later are plain (docs/design/016).

bool is_bert_space(int32_t code_point);      // Unicode's White_Space
bool is_bert_dropped(int32_t code_point);    // U+0000, U+FFFD, control but TAB, LF, CR; format; private use
bool is_bert_sign(int32_t code_point);       // is_ascii_sign, or Unicode's punctuation
bool is_bert_ideograph(int32_t code_point);  // of the CJK blocks, not of kana or hangul
bool is_bert_accent(int32_t code_point);     // nonspacing mark

// Tells whether `code_point` is ASCII that is neither letter nor digit nor control nor space: "$" and "~" too.
bool is_ascii_sign(int32_t code_point);

int bert_combining_class(int32_t code_point);

// Writes the canonical decomposition, all the way; returns how many parts it has. A character without one is its own.
constexpr int kLongestDecomposition = 4;
int bert_decomposition(int32_t code_point, int32_t (&parts)[kLongestDecomposition]);

}  // namespace headshare
