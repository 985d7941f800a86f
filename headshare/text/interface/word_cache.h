// Keeps words that are already encoded, in bounded memory.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace headshare {

// Natural text repeats its words: a hit costs one hash and one comparison instead of the merges.
// Holds at most kMostWords words; when full it starts anew, so memory stays bounded (about 6 MB)
// and a change of subject is followed. Not thread-safe.
class WordCache {
 public:
  static constexpr size_t kMostWords = 1 << 16;
  static constexpr size_t kLongestWord = 48;  // bytes; longer words are rarely seen twice

  WordCache() : slots_(2 * kMostWords) {}

  // Returns the ids of `word` (not empty), or an empty span when it is not held. They are valid until insert.
  std::span<const int32_t> find(std::string_view word) const;

  // Remembers a word that find has just not found; words over kLongestWord are ignored.
  void insert(std::string_view word, std::span<const int32_t> ids);

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t text = 0;   // offset in text_
    uint32_t first = 0;  // offset in ids_
    uint16_t bytes = 0;  // 0: empty slot
    uint16_t count = 0;
  };

  size_t locate(std::string_view word, uint32_t hash) const;

  std::vector<Slot> slots_;  // linear probing, at most half full
  std::vector<char> text_;
  std::vector<int32_t> ids_;
  size_t words_ = 0;
};

}  // namespace headshare
