#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>

#include "headshare/base/testing.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/embeddings/testing.h"
#include "headshare/models/testing.h"
#include "headshare/text/hash/hash_tokenizer.h"

namespace headshare {
namespace {

using testing::HasSubstr;

constexpr TokenEmbeddingKind kHashed[] = {TokenEmbeddingKind::kHashEmb, TokenEmbeddingKind::kHashPool,
                                          TokenEmbeddingKind::kHashAdd, TokenEmbeddingKind::kHashProj};

using Made = MadeEmbedding;

// A Reference computes the specification's formula for one token, term by term, in float64.
class Reference {
 public:
  Reference(const TokenEmbeddingOptions& options, std::map<std::string, Tensor> parameters)
      : options_(options), parameters_(std::move(parameters)) {}

  // `special` is 0 .. 4, or -1 for a word.
  Tensor row(int64_t special, const Signature& signature, int64_t bucket) {
    if (options_.kind == TokenEmbeddingKind::kHashEmb) {
      return at("bucket_embedding")[special >= 0 ? special : 5 + bucket % options_.buckets];
    }
    const Tensor type = at("type_embedding")[special >= 0 ? special : 5];
    std::vector<double> bits;
    for (int i = 0; i < options_.bits; ++i) bits.push_back(special < 0 && signature.bit(i) ? 1 : 0);
    if (options_.kind == TokenEmbeddingKind::kHashPool) return type + pooled(bits, special >= 0);
    return type + (options_.kind == TokenEmbeddingKind::kHashAdd ? added(bits) : correlated(bits));
  }

  std::map<std::string, Tensor>& parameters() { return parameters_; }

 private:
  const Tensor& at(const std::string& name) { return parameters_.at(name); }

  Tensor pooled(const std::vector<double>& bits, bool special) {
    const Tensor weights = at("chunk_weights").exp() / at("chunk_weights").exp().sum(0, true);
    Tensor sum = at::zeros_like(weights[0]);
    for (int64_t c = 0; c < weights.size(0); ++c) {
      int64_t number = 0;
      for (int64_t i = c * options_.chunk_bits; i < std::min((c + 1) * options_.chunk_bits, options_.bits); ++i) {
        number = 2 * number + static_cast<int64_t>(bits[static_cast<size_t>(i)]);
      }
      const Tensor& rows = at("chunk_embedding");
      sum = sum + weights[c] * (special ? rows[0].detach() : rows[1 + number]);
    }
    return sum;
  }

  Tensor added(const std::vector<double>& bits) {
    Tensor sum = at::zeros_like(at("bit_embedding_one").select(1, 0));
    for (size_t i = 0; i < bits.size(); ++i) {
      sum = sum + at(bits[i] == 1 ? "bit_embedding_one" : "bit_embedding_zero").select(1, static_cast<int64_t>(i));
    }
    return sum / std::sqrt(static_cast<double>(bits.size()));
  }

  // Returns the covariance over the product of deviations.
  Tensor correlated(const std::vector<double>& bits) {
    const Tensor b = at::tensor(bits, at::kDouble);
    const Tensor& w = at("bit_projection");
    const Tensor covariance = (w * b).mean(1) - w.mean(1) * b.mean();
    const Tensor variances = ((w * w).mean(1) - w.mean(1).square()) * ((b * b).mean() - b.mean().square());
    return variances.eq(0).all().item<bool>() ? covariance * 0 : covariance / variances.sqrt();
  }

  TokenEmbeddingOptions options_;
  std::map<std::string, Tensor> parameters_;
};

// Checks rows and gradients of words, special tokens and a signature that stands for no word.
void expect_as_specified(const TokenEmbeddingOptions& options) {
  Made made(options);
  std::vector<int64_t> ids = {0, 4};
  for (const int32_t id : made.tokenizer->encode("hello the na\xc3\xafve ! hello")) ids.push_back(id);
  ids.push_back(-1);
  const Signature loose{.high = 0x0123456789abcdef, .low = 0xfedcba9876543210};
  const Tensor halves = at::tensor({static_cast<int64_t>(loose.high), static_cast<int64_t>(loose.low)}, at::kLong);
  const auto count = static_cast<int64_t>(ids.size());
  const Tensor found = made.embedding->lookup(
      {.ids = at::tensor(ids, at::kLong).view({2, count / 2}), .loose_signatures = halves.view({1, 2})},
      LookupGradient::kWhole);

  Reference reference(options, made.in_double());
  const WordTable& words = *made.tokenizer->words();
  const auto all = static_cast<int32_t>(words.size());
  const std::vector<Signature> signatures = words.signatures(0, all);
  const std::vector<int64_t> buckets = words.buckets(0, all);
  std::vector<Tensor> rows;
  for (const int64_t id : ids) {
    const auto word = static_cast<size_t>(std::max<int64_t>(0, id - 5));
    rows.push_back(id < 0 ? reference.row(-1, loose, static_cast<int64_t>(remainder(loose, kHashBuckets)))
                          : reference.row(id < 5 ? id : -1, signatures[word], buckets[word]));
  }
  const Tensor wanted = at::stack(rows);
  ASSERT_EQ(found.sizes(), at::IntArrayRef({2, count / 2, 6}));
  EXPECT_LT((found.view({count, 6}) - wanted).abs().max().item<double>(), 1e-5);

  const Tensor pull = random_tensor(wanted.sizes(), 5, at::kFloat, 1);
  (found.view({count, 6}) * pull).sum().backward();
  (wanted * pull).sum().backward();
  for (const Declared& one : declared_parameters(*made.host)) {
    const Tensor theirs = reference.parameters().at(one.name).grad();
    ASSERT_TRUE(one.tensor.grad().defined()) << one.name;
    EXPECT_LT((one.tensor.grad() - theirs).abs().max().item<double>(), 1e-4) << one.name;
  }
}

TEST(HashEmbedding, RowsAndGradientsAreThoseOfTheFormulas) {
  for (const TokenEmbeddingKind kind : kHashed) {
    SCOPED_TRACE(static_cast<int>(kind));
    expect_as_specified({.kind = kind});
    expect_as_specified({.kind = kind, .buckets = 7, .bits = 21, .chunk_bits = 4});
  }
}

// Hash-pool drops rows that chunks picked, and hash-add entries of its matrices, as in the authors' code; the other
// kinds drop nothing.
TEST(HashEmbedding, DropoutIsWhereTheAuthorsHaveIt) {
  const std::string text = "the brown fox";
  for (const TokenEmbeddingKind kind : kHashed) {
    Made made({.kind = kind});
    std::map<uint64_t, std::vector<int64_t>> dropped;
    const Tensor whole = made.rows(text);
    made.host->dropout = [&](const Tensor& x, uint64_t part) {
      EXPECT_FALSE(dropped.contains(part)) << "two masks of one part would be the same";
      dropped[part] = x.sizes().vec();
      return at::zeros_like(x);
    };
    const Tensor rest = made.rows(text);
    if (kind == TokenEmbeddingKind::kHashPool) {
      EXPECT_THAT(dropped, testing::ElementsAre(testing::Pair(1, testing::ElementsAre(3, 13, 6))));
    } else if (kind == TokenEmbeddingKind::kHashAdd) {
      EXPECT_THAT(dropped, testing::ElementsAre(testing::Pair(1, testing::ElementsAre(6, 128)),
                                                testing::Pair(2, testing::ElementsAre(6, 128))));
    } else {
      EXPECT_TRUE(dropped.empty());
    }
    // When all of the code is dropped, the type's row is left: words have the sixth.
    if (dropped.empty()) {
      EXPECT_TRUE(at::equal(rest, whole));
    } else {
      EXPECT_TRUE(at::equal(rest, made.in_double().at("type_embedding")[5].to(at::kFloat).expand_as(rest)));
    }
  }
}

TEST(HashEmbedding, WordsSeenLaterAreLookedUp) {
  Made made({.kind = TokenEmbeddingKind::kHashProj});
  const Tensor before = made.rows("one two");
  const Tensor after = made.rows("three two one");
  EXPECT_TRUE(at::equal(before[0], after[2]));
  EXPECT_TRUE(at::equal(before[1], after[1]));
  EXPECT_FALSE(at::equal(after[0], after[1]));
}

TEST(HashEmbedding, TokenizersMustFit) {
  Made made({.kind = TokenEmbeddingKind::kHashAdd});
  const std::shared_ptr<Tokenizer> bytes =
      train_tokenizer({.kind = TokenizerKind::kBytes}, [](std::string*) { return false; });
  EXPECT_THAT(error_message([&] { made.embedding->read_words(bytes); }), HasSubstr("has a vocabulary"));
  Made table({.kind = TokenEmbeddingKind::kHashAdd});
  EXPECT_THAT(error_message([&] { table.embedding->table(); }), HasSubstr("--task three-way"));
  Encoder model = small_encoder(small_encoder_options("mha"));
  EXPECT_THAT(error_message([&] { model->read_words(hash_tokenizer()); }), HasSubstr("has no vocabulary"));
}

EncoderOptions hashed_encoder(TokenEmbeddingKind kind) {
  EncoderOptions options = small_encoder_options("mhe_mul");
  options.masked_head = false;
  options.embedding.kind = kind;
  return options;
}

TEST(HashEmbedding, ModelsWithoutATokenizerSaySo) {
  const Encoder model = small_encoder(hashed_encoder(TokenEmbeddingKind::kHashProj));
  EXPECT_THAT(error_message([&] { model->hidden({.ids = random_ids(1, 4, 5)}); }), HasSubstr("read_words"));
  EncoderOptions masked = hashed_encoder(TokenEmbeddingKind::kHashProj);
  masked.masked_head = true;
  EXPECT_THAT(error_message([&] { resolve(masked); }), HasSubstr("--task three-way"));
}

// Section 3.6 of the specification counts 12 layers of 768 as in RoBERTa, without pooler and head.
TEST(HashEmbedding, TheCountsOfThePaper) {
  EncoderOptions options;
  options.layers = 12;
  options.context = 514;
  options.segments = 1;
  options.attention.d_model = 768;
  options.attention.heads = 12;
  const std::map<TokenEmbeddingKind, int64_t> totals = {{TokenEmbeddingKind::kHashEmb, 124055040},
                                                        {TokenEmbeddingKind::kHashPool, 86253312},
                                                        {TokenEmbeddingKind::kHashAdd, 85652736},
                                                        {TokenEmbeddingKind::kHashProj, 85554432}};
  for (const auto& [kind, total] : totals) {
    options.embedding.kind = kind;
    EXPECT_EQ(measure(resolve(options)).total_parameters, total);
  }
  Made proj({.kind = TokenEmbeddingKind::kHashProj}, 768);
  int64_t code = 0;
  for (const Declared& one : declared_parameters(*proj.host)) {
    if (one.name != "type_embedding") code += one.tensor.numel();
  }
  EXPECT_EQ(code + 768, 99072);  // code and the row that all words add
  options.three_way_head = true;
  EXPECT_EQ(measure(resolve(options)).total_parameters, 85554432 + 2307);
}

TEST(HashEmbedding, ModelsComeBackWithTheirTokenizer) {
  const fs::path directory = fs::temp_directory_path() / join_text("headshare_hash_test_", ::getpid());
  for (const TokenEmbeddingKind kind : kHashed) {
    EncoderOptions options = hashed_encoder(kind);
    options.three_way_head = true;
    Encoder model = small_encoder(options);
    const std::shared_ptr<Tokenizer> tokenizer = hash_tokenizer(TokenizerKind::kHashLsh);
    model->read_words(tokenizer);
    const auto path = directory / std::to_string(static_cast<int>(kind));
    save_model(path, model, tokenizer.get());
    LoadedEncoder loaded = load_encoder_model(path);
    loaded.tokenizer->encode("other words first");
    const auto scores = [](const Encoder& one, const Tokenizer& own) {
      std::vector<int64_t> ids;
      for (const int32_t id : own.encode("the same text")) ids.push_back(id);
      return one->three_way_scores({.ids = at::tensor(ids, at::kLong).unsqueeze(0)}, at::arange(3));
    };
    EXPECT_TRUE(at::equal(scores(model, *tokenizer), scores(loaded.model, *loaded.tokenizer)));
    const std::string config = read_file(path / "config.json");
    EXPECT_THAT(config, HasSubstr("\"format_version\": 7"));
  }
  fs::remove_all(directory);
}

}  // namespace
}  // namespace headshare
