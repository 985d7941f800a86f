#include "headshare/convert/hf/families/hashformer.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
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

bool hashes_words(const HfDirectory& directory) {
  const std::shared_ptr<Tokenizer>& tokenizer = directory.given_tokenizer();
  return tokenizer != nullptr && tokenizer->words() != nullptr;
}

void ask_for_hash(const HfDirectory& directory, ForeignModel* foreign) {
  foreign->tokenizers = [path = directory.path().string()]() -> TokenizerPair {
    throw Error(path +
                " is a HashFormer, and its files do not say which hash its words had; add --tokenizer hash-md (names "
                "with md), or --tokenizer hash-lsh --hash-merges FOLDER (names with lsh)");
  };
}

const TensorPlaces& hashformer_places(TokenEmbeddingKind kind) {
  static const TensorPlace types = {.theirs = "embeddings.special_token_embeddings.weight", .ours = "type_embedding"};
  static const std::map<TokenEmbeddingKind, TensorPlaces> places = {
      {TokenEmbeddingKind::kTable, {{.theirs = "embeddings.word_embeddings.weight", .ours = "token_embedding"}}},
      {TokenEmbeddingKind::kHashEmb, {{.theirs = "embeddings.word_embeddings.weight", .ours = "bucket_embedding"}}},
      {TokenEmbeddingKind::kHashPool,
       {types,
        {.theirs = "embeddings.component_embeddings.weight", .ours = "chunk_embedding"},
        {.theirs = "embeddings.adaptive_weights", .ours = "chunk_weights"}}},
      {TokenEmbeddingKind::kHashAdd,
       {types,
        {.theirs = "embeddings.proj_mat_1.weight", .ours = "bit_embedding_one"},
        {.theirs = "embeddings.proj_mat_2.weight", .ours = "bit_embedding_zero"}}},
      {TokenEmbeddingKind::kHashProj, {types, {.theirs = "embeddings.proj_mat.weight", .ours = "bit_projection"}}},
  };
  return places.at(kind);
}

}  // namespace headshare
