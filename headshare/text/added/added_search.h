// Finds added tokens in a text.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "headshare/text/added/added_token.h"
#include "headshare/text/added/piece_trie.h"
#include "headshare/text/unicode/text_span.h"

namespace headshare {

// Takes, of the tokens that begin first, the longest, and goes on behind it; one that is no single word where it must
// be is passed over as a whole. The parts are those of Hugging Face tokenizers (AddedVocabulary::find_matches).
class AddedSearch {
 public:
  AddedSearch() = default;

  // No text may be empty. If tokens have the same text, the first is found.
  explicit AddedSearch(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }
  size_t longest() const { return longest_; }  // bytes

  // Calls part(TextSpan, token) for each token found, and part(TextSpan, nullptr) for what stands between them, in
  // order. No part is empty, and together they are the text. Bytes that are not UTF-8 are no white space and no word.
  template <class Part>
  void for_each_part(std::string_view text, const Part& part) const {
    size_t done = 0;
    for (Found found = find(text, 0); found.token != nullptr; found = find(text, found.end)) {
      const TextSpan whole = with_white_space(text, found, done);
      if (done < whole.begin) part(TextSpan{done, whole.begin}, static_cast<const AddedToken*>(nullptr));
      part(whole, found.token);
      done = whole.end;
    }
    if (done < text.size()) part(TextSpan{done, text.size()}, static_cast<const AddedToken*>(nullptr));
  }

  bool may_begin_with(char byte) const { return begins_[static_cast<unsigned char>(byte)]; }

  // Tells whether a token's text begins in `piece` and ends there, or could end behind it.
  bool may_begin_in(std::string_view piece) const;

  // Tells whether a token's text begins in the first `bytes` bytes of `text`.
  bool begins_within(std::string_view text, size_t bytes) const;

 private:
  struct Found {
    const AddedToken* token = nullptr;
    size_t begin = 0, end = 0;
  };

  // Returns the first token from byte `at` on.
  Found find(std::string_view text, size_t at) const;
  Found longest_at(std::string_view text, size_t at) const;
  static TextSpan with_white_space(std::string_view text, const Found& found, size_t done);

  std::vector<AddedToken> tokens_;
  PieceTrie trie_;
  std::array<bool, 256> begins_ = {};  // whether a token begins with this byte: most texts are passed over by it
  size_t longest_ = 0;
};

}  // namespace headshare
