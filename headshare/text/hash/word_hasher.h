// Hash families: from a lower-cased word to a signature or a bucket (HashFormers, docs/mathematics.md).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "headshare/text/hash/signature.h"

namespace headshare {

// Buckets of both families: those of the published models, RoBERTa's vocabulary without its special tokens.
inline constexpr int64_t kHashBuckets = 50260;

class WordHasher {
 public:
  virtual ~WordHasher() = default;

  virtual Signature signature(std::string_view word) const = 0;
  virtual int64_t bucket(std::string_view word) const = 0;  // 0 .. kHashBuckets - 1
};

}  // namespace headshare
