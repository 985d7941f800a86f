#include <ATen/ATen.h>

#include "headshare/base/strings/valid_utf8.h"
#include "headshare/models/embeddings/character_rows.h"
#include "headshare/models/embeddings/letters_embedding.h"

namespace headshare {
namespace {

// The factors that positions put on characters start with this deviation, as the factors that separate mhe_mul's heads
// do.
constexpr double kPositionDeviation = 0.5;

// Cuts a word into its code points, at most `most`.
WordPieces::Cut first_characters(int64_t most) {
  return [most](const std::string& word, std::vector<int32_t>* code_points) {
    size_t at = 0;
    for (int64_t i = 0; i < most && at < word.size(); ++i) code_points->push_back(next_code_point(word, &at));
  };
}

class HashCharacters : public LettersEmbedding {
 public:
  HashCharacters(const TokenEmbeddingOptions& o, const EmbeddingSize& size, const EmbeddingHost& host)
      : LettersEmbedding(size, host, first_characters(o.word_characters)),
        buckets_(o.character_buckets),
        slices_(host.declare("character_embedding", {kCharacterHashes * buckets_, size.width / kCharacterHashes},
                             Init::normal(size.deviation))),
        positions_(
            host.declare("character_positions", {o.word_characters, size.width}, Init::normal(kPositionDeviation))) {}

 private:
  Tensor words(const PieceBags& bags) const override {
    const Tensor characters = at::embedding(slices_, character_rows(bags.pieces, buckets_)).flatten(1);  // [n, W]
    const Tensor placed = characters * (at::embedding(positions_, places_in_words(bags)) + 1);
    const Tensor all = at::arange(placed.size(0), bags.begins.options());
    return bag_sums(placed, all, bags.begins) / bags.counts.unsqueeze(1).to(placed.scalar_type()).sqrt();
  }

  int64_t buckets_;
  Tensor slices_;     // [8 N, W / 8]
  Tensor positions_;  // [L, W]
};

}  // namespace

std::shared_ptr<TokenEmbedding> make_hash_characters(const TokenEmbeddingOptions& options, const EmbeddingSize& size,
                                                     const EmbeddingHost& host) {
  return std::make_shared<HashCharacters>(options, size, host);
}

}  // namespace headshare
