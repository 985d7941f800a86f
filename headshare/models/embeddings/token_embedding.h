// A token embedding turns ids into vectors: one interface, a file for each kind.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "headshare/models/embeddings/options.h"
#include "headshare/ops/layer.h"
#include "headshare/text/interface/tokenizer.h"

namespace headshare {

// A LookupGradient says how the gradient of looked-up rows is stored.
enum class LookupGradient {
  kWhole,  // as large as the table
  kRows,   // sparse: added to a few rows of the gradient that a tied output layer gives; nothing else may be the only
           // one
};

// A lookup reads these ids.
struct TokenIds {
  Tensor ids;                    // int64 [B, T]
  Tensor loose_signatures = {};  // int64 [K, 2], upper and lower halves of what stands for no word: row k belongs to
                                 // the id -1 - k. Undefined: there is none. Only kinds that hash read it.
};

class TokenEmbedding {
 public:
  virtual ~TokenEmbedding() = default;

  virtual Tensor lookup(const TokenIds& tokens, LookupGradient gradient) const = 0;  // -> [B, T, W]

  // Returns the rows [V, W] from which a tied output layer forms logits. Throws Error for kinds without a vocabulary.
  virtual const Tensor& table() const;

  // Kinds that hash ask this tokenizer for the words behind ids. Throws Error where the tokenizer does not fit: a
  // table needs one with a vocabulary, the others one without.
  virtual void read_words(std::shared_ptr<const Tokenizer> tokenizer) = 0;

  virtual c10::Device device() const = 0;
};

// An EmbeddingHost is the model around an embedding.
struct EmbeddingHost {
  // Declares a parameter of the model itself, so that its name in checkpoints has no prefix.
  std::function<Tensor(const std::string& name, at::IntArrayRef sizes, Init start)> declare;
  // Applies the model's dropout; `part` numbers the masks of one pass, from 1 on.
  std::function<Tensor(const Tensor& x, uint64_t part)> dropout;
};

// An EmbeddingSize has V and W: the rows of a table, and the width of the vectors. Parameters start from N(0,
// deviation^2).
struct EmbeddingSize {
  int64_t vocabulary, width;
  double deviation;
};

std::shared_ptr<TokenEmbedding> make_token_embedding(const TokenEmbeddingOptions& options, const EmbeddingSize& size,
                                                     EmbeddingHost host);

// Declares `token_embedding` [V, W].
std::shared_ptr<TokenEmbedding> make_table_embedding(const EmbeddingSize& size, const EmbeddingHost& host);

// The next four are those of HashFormers (Xue and Aletras, EMNLP 2022; docs/mathematics.md#hashed-embeddings). Ids come
// from a HashTokenizer. All but the first add a row of `type_embedding` [6, W]: one for each special token, whose
// signature is 0, and the last for all words.

// Declares `bucket_embedding` [N + 5, W]: a row for each special token and each bucket.
std::shared_ptr<TokenEmbedding> make_hash_emb(const TokenEmbeddingOptions& options, const EmbeddingSize& size,
                                              const EmbeddingHost& host);

// Declares `chunk_embedding` [2^c + 1, W] and `chunk_weights` [C, W]: the C = ceil(B / c) chunks of a signature pick a
// row each, 1 + their number, special tokens row 0 for all; rows are averaged with softmax weights over the chunks, in
// each dimension by itself.
std::shared_ptr<TokenEmbedding> make_hash_pool(const TokenEmbeddingOptions& options, const EmbeddingSize& size,
                                               EmbeddingHost host);

// Declares `bit_embedding_one` and `bit_embedding_zero` [W, B]; a vector is (W_1 b + W_0 (1 - b)) / sqrt(B) for the
// bits b.
std::shared_ptr<TokenEmbedding> make_hash_add(const TokenEmbeddingOptions& options, const EmbeddingSize& size,
                                              EmbeddingHost host);

// Declares `bit_projection` [W, B]; dimension j is Pearson's correlation of the bits with row j, 0 for equal bits.
std::shared_ptr<TokenEmbedding> make_hash_proj(const TokenEmbeddingOptions& options, const EmbeddingSize& size,
                                               const EmbeddingHost& host);

// The next two read the words themselves. Special tokens have rows of `special_embedding` [5, W].

// Declares `trigram_embedding` [v, W]; a vector is the sum of the rows that the trigrams of a word pick
// (text/hash/trigrams.h), m each, as in T-FREE (Deiseroth et al., EMNLP 2024).
std::shared_ptr<TokenEmbedding> make_hash_trigram(const TokenEmbeddingOptions& options, const EmbeddingSize& size,
                                                  const EmbeddingHost& host);

// Declares `character_embedding` [8 N, W / 8] and `character_positions` [L, W]. The vector of a character is put
// together from 8 slices, which its hashes pick (character_rows.h), as in CANINE (Clark et al., TACL 2022). A word of n
// characters has the sum over its characters of vector * (1 + position), divided by sqrt(n). The order of characters
// counts therefore. CANINE itself has no words: it merges neighbouring characters by attention and convolution.
std::shared_ptr<TokenEmbedding> make_hash_characters(const TokenEmbeddingOptions& options, const EmbeddingSize& size,
                                                     const EmbeddingHost& host);

}  // namespace headshare
