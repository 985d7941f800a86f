// TokenEmbeddingOptions say which kind of token embedding an encoder has, and its sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headshare/base/options/field.h"
#include "headshare/text/hash/word_hasher.h"

namespace headshare {

enum class TokenEmbeddingKind {
  kTable,           // a row for each token of a vocabulary
  kHashEmb,         // a row for each bucket of words
  kHashPool,        // rows of one table, shared by all words, picked by chunks of the signature
  kHashAdd,         // one of two vectors for each bit of the signature
  kHashProj,        // a correlation with the signature in each dimension
  kHashTrigram,     // the sum of the rows that the trigrams of a word's bytes pick (T-FREE)
  kHashCharacters,  // vectors of a word's characters, made of slices that hashes pick (CANINE), joined by their places
};

struct TokenEmbeddingOptions {
  TokenEmbeddingKind kind = TokenEmbeddingKind::kTable;
  int64_t buckets = kHashBuckets;     // N of hash-emb: a word's bucket is the number from its hash family modulo N
  int64_t bits = Signature::kBits;    // B of the other kinds: they read the first B bits of a signature
  int64_t chunk_bits = kChunkBits;    // c of hash-pool
  int64_t trigram_rows = 8000;        // v of hash-trigram
  int64_t trigram_hashes = 10;        // m of hash-trigram: rows that a trigram picks
  int64_t character_buckets = 16384;  // buckets of each hash function of hash-characters
  int64_t word_characters = 64;       // characters of a word that hash-characters reads
};

// Tells whether words are hashed, so that there is no vocabulary.
inline bool is_hashed(const TokenEmbeddingOptions& options) { return options.kind != TokenEmbeddingKind::kTable; }

// Tells whether the kind reads the words themselves, by their letters; no signature stands for a word then.
inline bool reads_letters(TokenEmbeddingKind kind) {
  return kind == TokenEmbeddingKind::kHashTrigram || kind == TokenEmbeddingKind::kHashCharacters;
}

Fields fields(TokenEmbeddingOptions& options);

// Names the fields that embeddings of this kind do not read.
std::vector<std::string> idle_fields(TokenEmbeddingKind kind);

// Throws Error where the options do not fit one another or vectors of `width` numbers.
void check_token_embedding(const TokenEmbeddingOptions& options, int64_t width);

}  // namespace headshare
