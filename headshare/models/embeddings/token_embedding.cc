#include "headshare/models/embeddings/token_embedding.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/models/embeddings/character_rows.h"
#include "headshare/models/embeddings/idle_options.h"

namespace headshare {
namespace {

constexpr double kMostRows = 1 << 24;

const EnumNames<TokenEmbeddingKind>& kind_names() {
  static const EnumNames<TokenEmbeddingKind> names = {{TokenEmbeddingKind::kTable, "table"},
                                                      {TokenEmbeddingKind::kHashEmb, "hash-emb"},
                                                      {TokenEmbeddingKind::kHashPool, "hash-pool"},
                                                      {TokenEmbeddingKind::kHashAdd, "hash-add"},
                                                      {TokenEmbeddingKind::kHashProj, "hash-proj"},
                                                      {TokenEmbeddingKind::kHashTrigram, "hash-trigram"},
                                                      {TokenEmbeddingKind::kHashCharacters, "hash-characters"}};
  return names;
}

// Lists the kinds that read each field.
const std::vector<std::pair<std::string, std::vector<TokenEmbeddingKind>>>& readers() {
  using Kind = TokenEmbeddingKind;
  static const std::vector<std::pair<std::string, std::vector<Kind>>> readers = {
      {"hash-buckets", {Kind::kHashEmb}},          {"hash-bits", {Kind::kHashPool, Kind::kHashAdd, Kind::kHashProj}},
      {"hash-chunk-bits", {Kind::kHashPool}},      {"trigram-rows", {Kind::kHashTrigram}},
      {"trigram-hashes", {Kind::kHashTrigram}},    {"character-buckets", {Kind::kHashCharacters}},
      {"word-characters", {Kind::kHashCharacters}}};
  return readers;
}

std::string names_text(const std::vector<TokenEmbeddingKind>& kinds) {
  std::vector<std::string> names;
  for (const TokenEmbeddingKind kind : kinds) names.push_back(enum_name(kind_names(), kind));
  return list_text(names, "or");
}

}  // namespace

Fields fields(TokenEmbeddingOptions& o) {
  return {
      field("token-embedding", &o.kind,
            "table: a row for each token of a vocabulary; hash-...: from hashes of words, with --tokenizer hash-md or "
            "hash-lsh (HashFormers), of their trigrams (T-FREE) or of their characters (as in CANINE)",
            kind_names(), {.since = 7}),
      field("hash-buckets", &o.buckets, "rows of hash-emb", {.min = 1, .max = kHashBuckets, .since = 7}),
      field("hash-bits", &o.bits, "bits of a word's signature that hash-pool, hash-add and hash-proj read",
            {.min = 2, .max = Signature::kBits, .since = 7}),
      field("hash-chunk-bits", &o.chunk_bits, "bits that pick a row of hash-pool's table",
            {.min = 1, .max = 20, .since = 7}),
      field("trigram-rows", &o.trigram_rows, "rows of hash-trigram", {.min = 1, .max = kMostRows, .since = 8}),
      field("trigram-hashes", &o.trigram_hashes, "rows of hash-trigram that a trigram picks",
            {.min = 1, .max = 64, .since = 8}),
      field("character-buckets", &o.character_buckets, "buckets of each of hash-characters' 8 hash functions",
            {.min = 1, .max = kMostRows, .since = 8}),
      field("word-characters", &o.word_characters, "characters of a word that hash-characters reads, from the first on",
            {.min = 1, .max = 1024, .since = 8}),
  };
}

std::vector<std::string> idle_fields(TokenEmbeddingKind kind) {
  std::vector<std::string> idle;
  for (const auto& [name, kinds] : readers()) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) idle.push_back(name);
  }
  return idle;
}

void check_read_by(const std::vector<TokenEmbeddingKind>& kinds, TokenEmbeddingOptions options) {
  TokenEmbeddingOptions usual;
  const Fields ours = fields(options);
  const Fields defaults = fields(usual);
  for (size_t i = 0; i < ours.size(); ++i) {
    const auto found = std::find_if(readers().begin(), readers().end(),
                                    [&](const auto& reader) { return reader.first == ours[i].name; });
    if (found == readers().end() || ours[i].value() == defaults[i].value()) continue;
    const std::vector<TokenEmbeddingKind>& theirs = found->second;
    HS_CHECK(std::find_first_of(kinds.begin(), kinds.end(), theirs.begin(), theirs.end()) != kinds.end(), "--",
             ours[i].name, " is for ", names_text(theirs), ", and no token embedding here is one; leave it out");
  }
}

void check_token_embedding(const TokenEmbeddingOptions& o, int64_t width) {
  if (o.kind == TokenEmbeddingKind::kHashTrigram) {
    HS_CHECK(o.trigram_hashes <= o.trigram_rows, "--trigram-hashes ", o.trigram_hashes, " asks for more different ",
             "rows than the ", o.trigram_rows, " of --trigram-rows; make one of them fit the other");
  }
  if (o.kind == TokenEmbeddingKind::kHashCharacters) {
    HS_CHECK(width % kCharacterHashes == 0, "hash-characters puts vectors together from ", kCharacterHashes,
             " slices of equal width, and ", width, " is no multiple of ", kCharacterHashes,
             "; choose another --d-model or --embedding-width");
  }
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
    case TokenEmbeddingKind::kHashTrigram:
      return make_hash_trigram(options, size, host);
    case TokenEmbeddingKind::kHashCharacters:
      return make_hash_characters(options, size, host);
  }
  return make_table_embedding(size, host);
}

}  // namespace headshare
