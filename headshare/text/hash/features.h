// Finds the features that a word is made of, for the hash family LSH: words that share parts get similar signatures.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace headshare {

class BpeTokenizer;

struct WordFeature {
  uint32_t seed = 0;  // of the random projection
  int64_t place = 0;  // where the rotation begins, 0 .. kHashBuckets - 1
  double weight = 0;  // its count / max(L + 1 - its length, 1), in a word of L code points
};

// Words of more code points have only themselves for parts, for the parts of all others take L^2 bytes.
inline constexpr int64_t kLongestWordWithParts = 100;

// Features are thread-safe.
class WordFeatures {
 public:
  virtual ~WordFeatures() = default;

  // Returns the features of a word that is not empty, in the order in which they first occur.
  virtual std::vector<WordFeature> features(std::string_view word) const = 0;

  // Returns what a tokenizer.json says about them: {"features": name, ...}.
  virtual nlohmann::json settings() const = 0;
};

// Makes the features "affix": the word, and its prefixes and suffixes of 1 .. L - 1 code points, which count as parts
// of their own. Seed and place are the first 32 bits and the remainder by kHashBuckets of the part's digest. Needs no
// files.
std::shared_ptr<const WordFeatures> make_affix_features();

// Makes the features "bpe", as in HashFormers: the pieces of "dog-d-og-do-g" (the word, then each cut of it in two)
// under byte-level BPE, without a leading space and without "-" unless that is all there is; lengths are in bytes, seed
// and place are the piece's id. The published models used RoBERTa's ids.
std::shared_ptr<const WordFeatures> make_bpe_features(const BpeTokenizer& tokenizer);

}  // namespace headshare
