#include "headshare/convert/hf/hashformer.h"

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"
#include "headshare/text/hash/hash_tokenizer.h"

namespace headshare {
namespace {

constexpr int64_t kEmbRows = kHashBuckets + HashTokenizer::kSpecials;

}  // namespace

TokenEmbeddingKind hashformer_embedding(const HfConfig& config, bool hashes_words) {
  const nlohmann::json& size = config.value("vocab_size");
  const bool roberta = config.value("model_type") == "roberta";
  TokenEmbeddingKind kind = TokenEmbeddingKind::kTable;
  if (roberta && size == 0) kind = TokenEmbeddingKind::kHashPool;
  if (roberta && size == 1) kind = TokenEmbeddingKind::kHashAdd;
  if (roberta && size == 2) kind = TokenEmbeddingKind::kHashProj;
  if (roberta && kind == TokenEmbeddingKind::kTable && hashes_words) {
    HS_CHECK(size.is_null() || size == kEmbRows, config.config_key("vocab_size"), " is ", brief_json(size),
             "; a HashFormer has ", kEmbRows, " rows (Emb), or vocab_size 0 (Pool), 1 (Add) or 2 (Proj)");
    kind = TokenEmbeddingKind::kHashEmb;
  }
  const nlohmann::json& padding = config.value("pad_token_id");
  HS_CHECK(kind == TokenEmbeddingKind::kTable || padding.is_null() || padding == 1, config.config_key("pad_token_id"),
           " is ", brief_json(padding), "; the padding of HashFormers is 1, and positions are counted from it");
  return kind;
}

const TensorNames& hashformer_tensors(TokenEmbeddingKind kind) {
  static const TensorNames::value_type types = {"embeddings.special_token_embeddings.weight", "type_embedding"};
  static const std::map<TokenEmbeddingKind, TensorNames> names = {
      {TokenEmbeddingKind::kTable, {{"embeddings.word_embeddings.weight", "token_embedding"}}},
      {TokenEmbeddingKind::kHashEmb, {{"embeddings.word_embeddings.weight", "bucket_embedding"}}},
      {TokenEmbeddingKind::kHashPool,
       {types,
        {"embeddings.component_embeddings.weight", "chunk_embedding"},
        {"embeddings.adaptive_weights", "chunk_weights"}}},
      {TokenEmbeddingKind::kHashAdd,
       {types,
        {"embeddings.proj_mat_1.weight", "bit_embedding_one"},
        {"embeddings.proj_mat_2.weight", "bit_embedding_zero"}}},
      {TokenEmbeddingKind::kHashProj, {types, {"embeddings.proj_mat.weight", "bit_projection"}}},
  };
  return names.at(kind);
}

}  // namespace headshare
