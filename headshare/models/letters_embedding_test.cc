#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "headshare/base/testing.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/embeddings/character_rows.h"
#include "headshare/models/embeddings/testing.h"
#include "headshare/models/embeddings/word_pieces.h"
#include "headshare/models/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

constexpr TokenEmbeddingKind kKinds[] = {TokenEmbeddingKind::kHashTrigram, TokenEmbeddingKind::kHashCharacters};
constexpr int64_t kWidth = 16;

// Python's hashlib gives these rows for words of one trigram, 4 of 100 rows.
const std::map<std::string, std::vector<int64_t>> kTrigramRows = {
    {"a", {1, 7, 52, 70}}, {"!", {25, 44, 62, 85}}, {"7", {40, 53, 55, 89}}};

TEST(LettersEmbedding, CharactersPickTheRowsOfCanine) {
  const Tensor rows = character_rows(at::tensor({0x61, 0xE9, 0x1F600}, at::kLong), 16384);
  const Tensor wanted = at::tensor({3038, 20598, 38550, 55130, 72690, 91426, 108398, 125762,  //
                                    7254, 26446, 46574, 63426, 66234, 88234, 106022, 124746,  //
                                    2591, 21035, 45627, 56893, 75337, 95841, 113255, 120433},
                                   at::kLong);
  EXPECT_TRUE(at::equal(rows, wanted.view({3, 8}))) << rows;
}

// A Reference computes the formulas term by term, in float64. `words` are the words' code points, or their trigrams'
// rows.
class Reference {
 public:
  explicit Reference(const MadeEmbedding& made) : parameters_(made.in_double()) {}

  Tensor special(int64_t id) { return parameters_.at("special_embedding")[id]; }

  Tensor by_trigrams(const std::string& word) {
    Tensor sum = at::zeros({kWidth}, at::kDouble);
    for (const int64_t row : kTrigramRows.at(word)) sum = sum + parameters_.at("trigram_embedding")[row];
    return sum;
  }

  Tensor by_characters(const std::vector<int64_t>& word, int64_t buckets) {
    constexpr int64_t kPrimes[] = {31, 43, 59, 61, 73, 97, 103, 113};
    Tensor sum = at::zeros({kWidth}, at::kDouble);
    for (size_t i = 0; i < word.size(); ++i) {
      std::vector<Tensor> slices;
      for (int64_t k = 0; k < 8; ++k) {
        slices.push_back(parameters_.at("character_embedding")[k * buckets + (word[i] + 1) * kPrimes[k] % buckets]);
      }
      sum = sum + at::cat(slices) * (1 + parameters_.at("character_positions")[static_cast<int64_t>(i)]);
    }
    return sum / std::sqrt(static_cast<double>(word.size()));
  }

  std::map<std::string, Tensor>& parameters() { return parameters_; }

 private:
  std::map<std::string, Tensor> parameters_;
};

void expect_same(const MadeEmbedding& made, const Tensor& found, const std::vector<Tensor>& rows,
                 Reference* reference) {
  const Tensor wanted = at::stack(rows);
  ASSERT_EQ(found.sizes(), wanted.sizes());
  EXPECT_LT((found - wanted).abs().max().item<double>(), 1e-5);
  const Tensor pull = random_tensor(wanted.sizes(), 5, at::kFloat, 1);
  (found * pull).sum().backward();
  (wanted * pull).sum().backward();
  for (const Declared& one : declared_parameters(*made.host)) {
    ASSERT_TRUE(one.tensor.grad().defined()) << one.name;
    EXPECT_LT((one.tensor.grad() - reference->parameters().at(one.name).grad()).abs().max().item<double>(), 1e-4)
        << one.name;
  }
}

TEST(LettersEmbedding, TrigramRowsAndGradientsAreThoseOfTheFormula) {
  const MadeEmbedding made({.kind = TokenEmbeddingKind::kHashTrigram, .trigram_rows = 100, .trigram_hashes = 4},
                           kWidth);
  const Tensor ids = at::cat({at::tensor({0, 4, 1}).unsqueeze(0), id_row(*made.tokenizer, "a ! a 7 !")}, 1);
  const Tensor found = made.embedding->lookup({.ids = ids.view({2, 4})}, LookupGradient::kWhole).view({8, kWidth});
  Reference reference(made);
  std::vector<Tensor> rows = {reference.special(0), reference.special(4), reference.special(1)};
  for (const char* word : {"a", "!", "a", "7", "!"}) rows.push_back(reference.by_trigrams(word));
  expect_same(made, found, rows, &reference);
}

TEST(LettersEmbedding, CharacterRowsAndGradientsAreThoseOfTheFormula) {
  const MadeEmbedding made({.kind = TokenEmbeddingKind::kHashCharacters, .character_buckets = 50, .word_characters = 4},
                           kWidth);
  const Tensor ids = at::cat({at::tensor({2, 3}).unsqueeze(0), id_row(*made.tokenizer, "né én n 日本語😀x né")}, 1);
  const Tensor found = made.embedding->lookup({.ids = ids}, LookupGradient::kWhole)[0];
  Reference reference(made);
  std::vector<Tensor> rows = {reference.special(2), reference.special(3)};
  const std::vector<std::vector<int64_t>> words = {{'n', 0xE9}, {0xE9, 'n'}, {'n'},      {0x65E5, 0x672C, 0x8A9E},
                                                   {0x1F600},   {'x'},       {'n', 0xE9}};
  for (const auto& word : words) rows.push_back(reference.by_characters(word, 50));
  expect_same(made, found, rows, &reference);
}

// Words that share their beginning or end share the trigram at that border; anagrams differ, in both kinds.
TEST(LettersEmbedding, TheOrderOfLettersCounts) {
  for (const TokenEmbeddingKind kind : kKinds) {
    const MadeEmbedding made({.kind = kind}, kWidth);
    const Tensor rows = made.rows("listen silent listen");
    EXPECT_TRUE(at::equal(rows[0], rows[2]));
    EXPECT_GT((rows[0] - rows[1]).abs().max().item<double>(), 0.1);
  }
}

TEST(LettersEmbedding, WordsSeenLaterAreLookedUp) {
  for (const TokenEmbeddingKind kind : kKinds) {
    const MadeEmbedding made({.kind = kind}, kWidth);
    const Tensor before = made.rows("one two");
    const Tensor after = made.rows("twofold three two one");
    EXPECT_TRUE(at::equal(before[0], after[3]));
    EXPECT_TRUE(at::equal(before[1], after[2]));
    EXPECT_FALSE(at::equal(after[0], after[2]));
    const Tensor specials = made.embedding->lookup({.ids = at::tensor({1, 0}).view({1, 2})}, LookupGradient::kWhole);
    EXPECT_FALSE(at::equal(specials[0][0], specials[0][1]));
  }
}

// Words of 10 MB take only the time and the memory of their first letters.
TEST(LettersEmbedding, LongWordsAreCut) {
  const std::string end(10'000'000, 'z');
  std::string begin;
  for (int i = 0; begin.size() < 2000; ++i) begin += std::to_string(i * i) + "b";
  for (const TokenEmbeddingKind kind : kKinds) {
    const MadeEmbedding made({.kind = kind}, kWidth);
    const Tensor rows = made.rows(begin + " " + begin + end + " " + begin.substr(1));
    EXPECT_TRUE(at::equal(rows[0], rows[1]));
    EXPECT_FALSE(at::equal(rows[0], rows[2]));
    EXPECT_TRUE(rows.isfinite().all().item<bool>());
  }
  const MadeEmbedding two({.kind = TokenEmbeddingKind::kHashCharacters, .word_characters = 2}, kWidth);
  const Tensor rows = two.rows("ab abc axc");
  EXPECT_TRUE(at::equal(rows[0], rows[1]));
  EXPECT_FALSE(at::equal(rows[0], rows[2]));
}

TEST(LettersEmbedding, PlacesAreCountedByWord) {
  const PieceBags bags{.pieces = at::arange(6), .begins = at::tensor({0, 1, 4}), .counts = at::tensor({1, 3, 2})};
  EXPECT_TRUE(at::equal(places_in_words(bags), at::tensor({0, 0, 1, 2, 0, 1}, at::kLong)));
}

TEST(LettersEmbedding, WhatDoesNotFitIsRefused) {
  const std::shared_ptr<Tokenizer> bytes =
      train_tokenizer({.kind = TokenizerKind::kBytes}, [](std::string*) { return false; });
  const Tensor loose = at::zeros({1, 2}, at::kLong);
  for (const TokenEmbeddingKind kind : kKinds) {
    const MadeEmbedding made({.kind = kind}, kWidth);
    EXPECT_THAT(
        error_message([&] {
          made.embedding->lookup({.ids = at::full({1, 1}, -1), .loose_signatures = loose}, LookupGradient::kWhole);
        }),
        HasSubstr("--random-tokens words"));
    EXPECT_THAT(error_message([&] { made.embedding->table(); }), HasSubstr("--task three-way"));
    EXPECT_THAT(error_message([&] { made.embedding->read_words(bytes); }), HasSubstr("has a vocabulary"));
  }
  EncoderOptions options = small_encoder_options("mha");
  options.masked_head = false;
  options.embedding = {.kind = TokenEmbeddingKind::kHashTrigram, .trigram_rows = 9};
  EXPECT_THAT(error_message([&] { resolve(options); }), HasSubstr("--trigram-hashes 10 asks for more"));
  options.embedding.kind = TokenEmbeddingKind::kHashCharacters;
  options.embedding_width = 12;
  EXPECT_THAT(error_message([&] { resolve(options); }), HasSubstr("12 is no multiple of 8"));
}

// At BERT-base's width T-FREE has 8,000 rows, and CANINE 16,384 buckets of 768 numbers.
TEST(LettersEmbedding, CountsInClosedForm) {
  const auto count = [](const TokenEmbeddingOptions& options, int64_t width) {
    const MadeEmbedding made(options, width);
    int64_t sum = 0;
    for (const Declared& one : declared_parameters(*made.host)) sum += one.tensor.numel();
    return sum;
  };
  EXPECT_EQ(count({.kind = TokenEmbeddingKind::kHashTrigram}, 768), (8000 + 5) * 768);
  EXPECT_EQ(count({.kind = TokenEmbeddingKind::kHashTrigram, .trigram_rows = 77}, 6), (77 + 5) * 6);
  EXPECT_EQ(count({.kind = TokenEmbeddingKind::kHashCharacters}, 768), (16384 + 64 + 5) * 768);
  EXPECT_EQ(count({.kind = TokenEmbeddingKind::kHashCharacters, .character_buckets = 20, .word_characters = 3}, 24),
            (20 + 3 + 5) * 24);
}

TEST(LettersEmbedding, ModelsComeBackWithTheirTokenizer) {
  const fs::path directory = fs::temp_directory_path() / join_text("headshare_letters_test_", ::getpid());
  for (const TokenEmbeddingKind kind : kKinds) {
    EncoderOptions options = small_encoder_options("mhe_mul");
    options.masked_head = false;
    options.three_way_head = true;
    options.embedding.kind = kind;
    Encoder model = small_encoder(options);
    const std::shared_ptr<Tokenizer> tokenizer = hash_tokenizer();
    model->read_words(tokenizer);
    const auto path = directory / std::to_string(static_cast<int>(kind));
    save_model(path, model, tokenizer.get());
    const LoadedEncoder loaded = load_encoder_model(path);
    loaded.tokenizer->encode("other words first");
    const auto scores = [](const Encoder& one, const Tokenizer& own) {
      return one->three_way_scores({.ids = id_row(own, "the same text")}, at::arange(3));
    };
    EXPECT_TRUE(at::equal(scores(model, *tokenizer), scores(loaded.model, *loaded.tokenizer)));
    EXPECT_THAT(read_file(path / "config.json"), HasSubstr("\"format_version\": 8"));
  }
  fs::remove_all(directory);
}

}  // namespace
}  // namespace headshare
