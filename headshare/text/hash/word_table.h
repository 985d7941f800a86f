// Words numbered in the order in which they were first seen: how a text without a vocabulary becomes ids.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headshare/text/hash/signature.h"

namespace headshare {

class WordHasher;

// Grows only. Thread-safe.
class WordTable {
 public:
  // More distinct words than this are an Error: the table's memory is bounded (about 2 GB at this number).
  static constexpr int64_t kMostWords = 1 << 24;

  // The hasher must outlive the table.
  explicit WordTable(const WordHasher& hasher) : hasher_(hasher) {}

  // The number of a word, which it gets if it is new: 0, 1, 2, ...
  int32_t number(std::string_view word);
  // The same for many words under one lock.
  void numbers(std::span<const std::string_view> words, std::vector<int32_t>* out);

  int64_t size() const;
  std::string word(int32_t number) const;  // throws Error for a number that was not given out

  // Signature and bucket of words by number, 0 <= first <= last <= size(); computed at the first call and kept.
  std::vector<Signature> signatures(int32_t first, int32_t last) const;
  std::vector<int64_t> buckets(int32_t first, int32_t last) const;

  // A word whose signature is known already, from a file that keeps it; like number().
  int32_t add(std::string_view word, const Signature& signature);

 private:
  // left to the implementation
};

}  // namespace headshare
