// Finds the pieces of a word whose scores sum to the most: SentencePiece's Unigram (Kudo, 2018).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/text/added/piece_trie.h"
#include "headshare/text/unicode/text_span.h"

namespace headshare {

// Pieces may not be longer, in bytes: a word takes so many steps a byte at most. SentencePiece's have 16 characters
// where nobody asks for more.
constexpr size_t kLongestPiece = 1024;

class UnigramModel {
 public:
  struct Options {
    const std::vector<std::string>* tokens = nullptr;  // by id; outlives the model
    const std::vector<double>* scores = nullptr;       // as many
    std::vector<bool> never = {};                      // by id: special tokens, which no text gives
    int32_t unknown = 0;
    bool byte_fallback = false;
  };

  UnigramModel() = default;
  explicit UnigramModel(const Options& options);

  // Calls visit(id, where in the word) for each piece of `word` (UTF-8), in order. As Hugging Face tokenizers: a
  // character that is no piece costs the least of all scores less 10, characters like it that stand side by side are
  // one unknown piece, and of equal sums the one that was found first stays. With byte fallback an unknown piece is its
  // bytes, "<0xE4>", where all 256 are tokens. Takes 16 bytes of memory for each byte of the word.
  void for_each_piece(std::string_view word, const std::function<void(int32_t, TextSpan)>& visit) const;

  // Returns the byte that a token stands for under byte fallback; -1 for other tokens.
  int byte_of(int32_t id) const;

 private:
  // This is the best way to where it stands: its last piece.
  struct Step {
    double score = 0;
    int32_t id = 0;
    uint32_t bytes = 0;  // 0: no way leads here
  };

  std::vector<Step> best_steps(std::string_view word) const;
  void visit_unknown(std::string_view piece, TextSpan where, const std::function<void(int32_t, TextSpan)>& visit) const;

  PieceTrie trie_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  int32_t unknown_ = 0;
  std::vector<int32_t> bytes_;  // the token of each byte; empty without byte fallback
};

}  // namespace headshare
