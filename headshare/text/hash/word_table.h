// Numbers words in the order in which they were first seen: so a text without a vocabulary becomes ids.
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

// The table grows only, and is thread-safe.
class WordTable {
 public:
  // More distinct words than this, or words of more bytes in all, are an Error: the table's memory is bounded, at about
  // 2 GB and the bytes of the words.
  static constexpr int64_t kMostWords = 1 << 24;
  static constexpr int64_t kMostBytes = 1 << 30;

  // The hasher must outlive the table. Bounds are for tests.
  explicit WordTable(const WordHasher& hasher, int64_t most_words = kMostWords, int64_t most_bytes = kMostBytes)
      : hasher_(hasher), most_words_(most_words), most_bytes_(most_bytes) {}

  // Returns the number of a word, which it gets if it is new: 0, 1, 2, ...
  int32_t number(std::string_view word);
  // Does the same for many words under one lock; appends to `out`.
  void numbers(std::span<const std::string_view> words, std::vector<int32_t>* out);

  int64_t size() const;
  int64_t bytes() const;                   // of all words
  std::string word(int32_t number) const;  // throws Error for a number that was not given out

  // They return signature and bucket of words by number, 0 <= first <= last <= size(); computed at the first call and
  // kept. The table stays usable for other threads while they are computed.
  std::vector<Signature> signatures(int32_t first, int32_t last) const;
  std::vector<int64_t> buckets(int32_t first, int32_t last) const;

  // Adds a word whose signature is known already, from a file that keeps it; like number(). Throws Error when the table
  // knows another signature for it.
  int32_t add(std::string_view word, const Signature& signature);

 private:
  // Keeps what is known of each word's hash.
  template <class Value>
  struct Kept {
    std::vector<Value> values;
    std::vector<bool> known;
  };

  int32_t number_locked(std::string_view word);
  template <class Value, class Hash>
  std::vector<Value> hashes(int32_t first, int32_t last, Kept<Value>* kept, const Hash& hash) const;

  const WordHasher& hasher_;
  const int64_t most_words_, most_bytes_;
  mutable std::mutex mutex_;
  std::deque<std::string> words_;  // never moved: the keys below are views of them
  std::unordered_map<std::string_view, int32_t> numbers_;
  int64_t bytes_ = 0;
  mutable Kept<Signature> signatures_;
  mutable Kept<int64_t> buckets_;
};

}  // namespace headshare
