#include "headshare/models/embeddings/token_embedding.h"

#include "headshare/base/error.h"

namespace headshare {
namespace {

const EnumNames<TokenEmbeddingKind>& kind_names() {
  static const EnumNames<TokenEmbeddingKind> names = {{TokenEmbeddingKind::kTable, "table"},
                                                      {TokenEmbeddingKind::kHashEmb, "hash-emb"},
                                                      {TokenEmbeddingKind::kHashPool, "hash-pool"},
                                                      {TokenEmbeddingKind::kHashAdd, "hash-add"},
                                                      {TokenEmbeddingKind::kHashProj, "hash-proj"}};
  return names;
}

}  // namespace

Fields fields(TokenEmbeddingOptions& o) {
  return {
      field("token-embedding", &o.kind,
            "table: a row for each token of a vocabulary; hash-...: from hashes of words, with --tokenizer hash-md or "
            "hash-lsh (HashFormers)",
            kind_names()),
      field("hash-buckets", &o.buckets, "rows of hash-emb", {.min = 1, .max = kHashBuckets}),
      field("hash-bits", &o.bits, "bits of a word's signature that hash-pool, hash-add and hash-proj read",
            {.min = 2, .max = Signature::kBits}),
      field("hash-chunk-bits", &o.chunk_bits, "bits that pick a row of hash-pool's table", {.min = 1, .max = 20}),
  };
}

const Tensor& TokenEmbedding::table() const {
  throw Error(
      "hashed embeddings have no vocabulary to score tokens of; train such an encoder with `--task three-way` instead "
      "of `--task mlm`");
}

std::shared_ptr<TokenEmbedding> make_token_embedding(const TokenEmbeddingOptions& options, const EmbeddingSize& size,
                                                     EmbeddingHost host) {
  switch (options.kind) {
    case TokenEmbeddingKind::kTable:
      break;
    case TokenEmbeddingKind::kHashEmb:
      return make_hash_emb(options, size, host);
    case TokenEmbeddingKind::kHashPool:
      return make_hash_pool(options, size, std::move(host));
    case TokenEmbeddingKind::kHashAdd:
      return make_hash_add(options, size, std::move(host));
    case TokenEmbeddingKind::kHashProj:
      return make_hash_proj(options, size, host);
  }
  return make_table_embedding(size, host);
}

}  // namespace headshare
