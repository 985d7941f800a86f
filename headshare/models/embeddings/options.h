// Which kind of token embedding an encoder has.
#pragma once

#include <cstdint>

#include "headshare/base/field.h"
#include "headshare/text/hash/word_hasher.h"

namespace headshare {

enum class TokenEmbeddingKind {
  kTable,     // a row for each token of a vocabulary
  kHashEmb,   // a row for each bucket of words
  kHashPool,  // rows of one table, shared by all words, picked by chunks of the signature
  kHashAdd,   // one of two vectors for each bit of the signature
  kHashProj,  // a correlation with the signature in each dimension
};

struct TokenEmbeddingOptions {
  TokenEmbeddingKind kind = TokenEmbeddingKind::kTable;
  int64_t buckets = kHashBuckets;   // N of hash-emb: a word's bucket by its hash family, and the remainder by N
  int64_t bits = Signature::kBits;  // B of the others: the first so many bits of a signature
  int64_t chunk_bits = kChunkBits;  // c of hash-pool
};

// Whether words are hashed, so that there is no vocabulary.
inline bool is_hashed(const TokenEmbeddingOptions& options) { return options.kind != TokenEmbeddingKind::kTable; }

Fields fields(TokenEmbeddingOptions& options);

}  // namespace headshare
