#include "headshare/models/embeddings/letters_embedding.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/text/hash/hash_tokenizer.h"

namespace headshare {
namespace {

constexpr int64_t kLetterSpecials = HashTokenizer::kSpecials;

}  // namespace

LettersEmbedding::LettersEmbedding(const EmbeddingSize& size, const EmbeddingHost& host, WordPieces::Cut cut)
    : specials_(host.declare("special_embedding", {kLetterSpecials, size.width}, Init::normal(size.deviation))),
      pieces_(std::move(cut)) {}

Tensor LettersEmbedding::lookup(const TokenIds& tokens, LookupGradient) const {
  HS_CHECK(!tokens.loose_signatures.defined(),
           "embeddings that read letters have no vectors for signatures; use --random-tokens words");
  const auto [ids, places] = at::_unique(tokens.ids.flatten(), /*sorted=*/true, /*return_inverse=*/true);
  const int64_t specials = ids.lt(kLetterSpecials).sum().item<int64_t>();  // they come first
  const Tensor numbers = ids.slice(0, specials) - kLetterSpecials;
  Tensor vectors = specials_.index_select(0, ids.slice(0, 0, specials));
  if (numbers.size(0) > 0) vectors = at::cat({vectors, words(pieces_.of(numbers))});
  return at::embedding(vectors, places.view_as(tokens.ids));
}

}  // namespace headshare
