// The character map of a SentencePiece model says what it makes of characters before it cuts text into pieces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headshare {

// This is a "precompiled_charsmap": four bytes with the size of a double-array trie (Darts), the trie's units, and
// texts that end with a zero byte, where the trie's values point. It is untrusted.
class Charsmap {
 public:
  // Throws Error led by `where` when the parts do not fit into `bytes`, or texts are not UTF-8.
  Charsmap(std::string bytes, const std::string& where);
  Charsmap(const Charsmap&) = delete;  // texts_ stands in bytes_
  Charsmap& operator=(const Charsmap&) = delete;

  // Finds what `characters` (UTF-8) become: the text of the shortest key that they begin with, as Hugging Face
  // tokenizers have it. Returns false when no key is their beginning.
  bool find(std::string_view characters, std::string_view* becomes) const;

  const std::string& bytes() const { return bytes_; }

  // Checks the map for SentencePiece's own search, which checks nothing: throws Error led by `where` when some text
  // could lead it out of the map, to more keys than it has room for (32), or to a value that is no beginning of a text.
  void check_searches(const std::string& where) const;

 private:
  class SearchCheck;

  std::string bytes_;
  std::vector<uint32_t> units_;
  std::string_view texts_;  // into bytes_
};

}  // namespace headshare
