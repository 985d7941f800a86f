// A SentencePiece tokenizer normalises text by these steps, one after another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/text/unigram/charsmap.h"

namespace headshare {

// This is a character of the normalised text, and the bytes of the original that it came from.
struct NormalCharacter {
  int32_t code_point = 0;
  uint32_t begin = 0, end = 0;
};
using NormalText = std::vector<NormalCharacter>;

enum class NormalStepKind {
  kReplace,         // a text by another
  kCollapseSpaces,  // runs of two or more spaces by a text
  kDecompose,       // NFKD
  kStripMarks,      // drops marks, as Hugging Face's StripAccents
  kLowercase,       // each character's full lower case; U+0130 becomes two
  kCharsmap,        // by the model's map
};

struct NormalStep {
  NormalStepKind kind = NormalStepKind::kDecompose;
  std::string from = {};  // of kReplace, not empty
  std::string to = {};    // of kReplace and kCollapseSpaces
  std::shared_ptr<const Charsmap> map = {};
};

// Returns the characters of `text` (UTF-8 of less than 4 GiB), normalised: what Hugging Face tokenizers make of it,
// character for character, and where it places each: what replaces a text stands where the last character of that
// stood. Throws Error led by `where` as soon as the steps multiply the text, as those of a hostile file do.
NormalText normalised(std::string_view text, const std::vector<NormalStep>& steps, const std::string& where);

// Tells whether text may be normalised piece by piece, cut before a space that follows a visible ASCII character: not
// where a step replaces what holds other characters than those.
bool works_piecewise(const std::vector<NormalStep>& steps);

// Returns the length of the first such piece; `white` are the characters that count as spaces.
size_t piece_bytes(std::string_view text, std::string_view white);

}  // namespace headshare
