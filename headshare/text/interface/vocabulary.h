// A tokenizer gives its vocabulary as values, which writers of other formats ask for. Each kind gives its own
// (Tokenizer::vocabulary).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headshare/text/added/added_token.h"

namespace headshare {

enum class TokenKind {
  kOrdinary,
  kUnknown,  // stands for what no other token spells
  kSpecial,  // no text gives it: padding, the borders of texts, a mask
  kAdded,    // found in a text as a whole, before the tokenizer's own rules see it
  kByte,     // a byte of a character that no token spells: "<0xE4>"
  kUnused,   // of SentencePiece models
};

struct VocabularyToken {
  std::string spelling;  // "##ing", "▁the"; of byte-level kinds the bytes themselves
  TokenKind kind = TokenKind::kOrdinary;
};

// A merge is two adjacent tokens that become one.
struct TokenMerge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t result = 0;

  bool operator==(const TokenMerge&) const = default;
};

struct Vocabulary {
  std::vector<VocabularyToken> tokens = {};  // by id
  std::vector<TokenMerge> merges = {};       // by rank: the first is applied first; empty where the kind has none
  std::vector<double> scores = {};           // log probabilities by id; empty where the kind has none
  std::vector<AddedToken> added = {};        // by id, with their options; special tokens without options may be missing
};

}  // namespace headshare
