// Three-way classification replaces tokens of a window by shuffled and random ones (HashFormers, after Yamaguchi et
// al., EMNLP 2021). It needs no softmax over words, so encoders without a vocabulary can learn from it.
#pragma once

#include "headshare/base/options/field.h"
#include "headshare/base/rng.h"
#include "headshare/models/embeddings/options.h"
#include "headshare/tasks/masked/window_rows.h"

namespace headshare {

// ShuffleKind tells where a shuffled token comes from.
enum class ShuffleKind {
  kBatch,  // one permutation of the places of a window, the same for all windows of a batch; a token whose source is a
           // special token or padding stays what it is, but counts as shuffled (the authors')
  kRow,    // a permutation of the ordinary tokens of each window
};

// RandomTokens tells what a random token is.
enum class RandomTokens {
  kPaper,  // the authors': a random row of a table; uniform bits for hash-emb and hash-pool; for hash-add and hash-proj
           // bits that are each 1 with a probability u, which is uniform for each token; as
           // kWords for kinds that read letters, which have no codes
  kBits,   // uniform bits for all embeddings that read signatures
  kWords,  // a token at a random place of the text
};

struct CorruptionOptions {
  double rate = 0.1;
  ShuffleKind shuffle = ShuffleKind::kBatch;
  RandomTokens random = RandomTokens::kPaper;
};

Fields fields(CorruptionOptions& options);

// Throws Error for random tokens that embeddings of this kind have no vectors for.
void check_corruption(const CorruptionOptions& options, TokenEmbeddingKind embedding);

class Corrupter : public WindowRows {
 public:
  // `text` is where kWords draws from; windows have `context` places. Throws Error as WindowRows does.
  Corrupter(const Tokenizer& tokenizer, const CorruptionOptions& options, TokenEmbeddingKind embedding, TokenData text,
            int64_t context, const std::string& path = {});

  // Draws a permutation of the places of a window.
  std::vector<int64_t> permutation(uint64_t key) const;

  // Replaces ordinary tokens of a padded batch's row and sets its targets to ThreeWay classes: each token is shuffled
  // with probability `rate`, and each that is not becomes random with probability `rate`.
  void corrupt_row(int64_t row, const std::vector<int64_t>& permutation, Philox& random, WindowBatch* batch) const;

 private:
  int64_t random_token(Philox& random, WindowBatch* batch) const;
  Signature random_signature(Philox& random) const;
  int64_t token_of_text(Philox& random) const;
  std::vector<int64_t> candidates(std::span<const int64_t> row, const std::vector<int64_t>& permutation,
                                  Philox& random) const;

  CorruptionOptions options_;
  TokenEmbeddingKind embedding_;
  TokenData text_;
  int64_t context_;
  std::vector<int64_t> ordinary_tokens_;  // the ordinary tokens of a vocabulary
};

}  // namespace headshare
