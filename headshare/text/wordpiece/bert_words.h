// Goes BERT's way from text to words: cleaning, case and accents, then a cut at white space and signs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/text/unicode/text_span.h"

namespace headshare {

// The steps are taken in this order.
struct BertNormalization {
  bool clean_text = true;     // drops control, format and private characters, U+0000 and U+FFFD
  bool space_chinese = true;  // CJK ideographs are words of their own
  bool strip_accents = true;  // decomposes (NFD) and drops nonspacing marks
  bool lowercase = true;      // each character's full lower case; U+0130 becomes two

  bool operator==(const BertNormalization&) const = default;
};
// This takes no step at all: for text that is normalised already.
inline constexpr BertNormalization kNoNormalization = {
    .clean_text = false, .space_chinese = false, .strip_accents = false, .lowercase = false};

// This is one word of the normalised text, without white space: a sign alone, an ideograph alone, or a run of other
// characters.
struct BertWord {
  std::string text;               // cut after as many characters as the reader was asked to keep
  std::vector<TextSpan> sources;  // for each byte of `text`: the character of the original it came from
  size_t characters = 0;          // all of them
  TextSpan span;                  // from the first character's source to the last one's
};

// Calls `visit` for each word, in order. `text` must be valid UTF-8 (check_utf8). A word keeps at most
// `most_characters` in `text`, so that a word without end takes no memory.
//
// Devlin et al. 2019, google-research/bert's BasicTokenizer and, character for character, Hugging Face
// tokenizers (BertNormalizer, BertPreTokenizer; their tables: bert_characters.h). Letters newer than
// the installed utf8proc have no lower case.
void for_each_bert_word(std::string_view text, const BertNormalization& normalization, size_t most_characters,
                        const std::function<void(const BertWord&)>& visit);

// This is the normalised text; ideographs that are words of their own have spaces around them.
struct BertText {
  std::string text;
  std::vector<TextSpan> sources;  // for each byte of `text`: the character of the original it came from
};
BertText bert_normal_text(std::string_view text, const BertNormalization& normalization);

// Every normalization cuts at these bytes, whatever stands beside them: ASCII white space, which goes, and ASCII signs,
// which are words. Text between them can be normalised piece by piece.
enum class ByteRole : uint8_t { kWord, kSpace, kSign };
ByteRole byte_role(char byte);

}  // namespace headshare
