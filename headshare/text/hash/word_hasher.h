// Hash families map a lower-cased word to a signature or a bucket (HashFormers, docs/mathematics.md).
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "headshare/text/hash/features.h"
#include "headshare/text/hash/signature.h"

namespace headshare {

// Both families have the buckets of the published models: RoBERTa's vocabulary without its special tokens.
inline constexpr int64_t kHashBuckets = 50260;

// Hashers are thread-safe. Words are valid UTF-8, not empty and lower-cased by the caller.
class WordHasher {
 public:
  virtual ~WordHasher() = default;

  virtual Signature signature(std::string_view word) const = 0;
  virtual int64_t bucket(std::string_view word) const = 0;  // 0 .. kHashBuckets - 1

  virtual std::string name() const = 0;  // "md", "lsh"

  // Returns what a tokenizer.json says about it, besides its name.
  virtual nlohmann::json settings() const = 0;
};

// Makes MD, message digest: the signature is the word's digest (digest.h), the bucket its remainder by kHashBuckets.
// Words are spread at random, however alike they are.
std::shared_ptr<const WordHasher> make_md_hasher();

// Makes LSH, locality-sensitive hashing, of the word's features g, their weights a_g and normal numbers
// (legacy_normal.h):
//   signature: bit j = (sum_g a_g r_g[j] > 0), r_g the first 128 numbers of the generator seeded with g's seed
//   bucket: the first arg-max over i of s_i sum_g a_g R[(place_g + i) mod kHashBuckets], with R the numbers of seed 42
//   and s_i = 1 in the first half of the buckets, -1 in the second
// Words that share features get similar signatures. Each thread keeps up to 32,768 of the vectors r_g (32 MB); a bucket
// takes kHashBuckets products for each feature.
std::shared_ptr<const WordHasher> make_lsh_hasher(std::shared_ptr<const WordFeatures> features);

}  // namespace headshare
