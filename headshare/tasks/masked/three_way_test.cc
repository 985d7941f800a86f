#include "headshare/tasks/masked/three_way.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "headshare/base/testing.h"
#include "headshare/tasks/testing.h"
#include "headshare/text/hash/hash_tokenizer.h"
#include "headshare/text/simple/byte_tokenizer.h"

namespace headshare {
namespace {

std::shared_ptr<Tokenizer> hash_tokenizer() {
  return train_tokenizer({.kind = TokenizerKind::kHashMd}, [](std::string*) { return false; });
}

// Returns 200 different words.
std::string many_words() {
  std::string text;
  for (int i = 0; i < 200; ++i) text += join_text("w", i, " ");
  return text;
}

struct Corrupted {
  WindowBatch before, after;
};

Corrupted corrupted(const Tokenizer& tokenizer, const CorruptionOptions& options, TokenEmbeddingKind kind,
                    int64_t rows = 100) {
  const std::vector<int32_t> ids = tokenizer.encode(many_words());
  const TokenData text = TokenData::from_memory(ids, 1);
  const auto length = static_cast<int64_t>(ids.size());
  const Corrupter corrupter(tokenizer, options, kind, text, length + 2);
  std::vector<int64_t> tokens(ids.begin(), ids.end());
  Corrupted result;
  for (int64_t row = 0; row < rows; ++row) corrupter.add_row(tokens, &result.before);
  corrupter.pad(&result.before);
  result.after = result.before;
  const std::vector<int64_t> permutation = corrupter.permutation(7);
  for (int64_t row = 0; row < rows; ++row) {
    Philox random(static_cast<uint64_t>(row));
    corrupter.corrupt_row(row, permutation, random, &result.after);
  }
  return result;
}

std::array<int64_t, 3> count_labels(const WindowBatch& batch) {
  std::array<int64_t, 3> counts = {};
  for (const int64_t label : batch.targets) {
    if (label != kIgnoredTarget) ++counts.at(static_cast<size_t>(label));
  }
  return counts;
}

TEST(ThreeWay, TenInAHundredAreShuffledAndNineRandom) {
  const auto tokenizer = hash_tokenizer();
  const Corrupted found = corrupted(*tokenizer, {}, TokenEmbeddingKind::kHashProj);
  const auto [original, shuffled, random] = count_labels(found.after);
  EXPECT_EQ(original + shuffled + random, 100 * 200);
  EXPECT_EQ(found.after.scored, 100 * 200);
  EXPECT_NEAR(static_cast<double>(shuffled), 2000, 170);  // four standard deviations of a binomial
  EXPECT_NEAR(static_cast<double>(random), 1800, 162);
  EXPECT_EQ(static_cast<int64_t>(found.after.loose_signatures.size()), random);
  for (size_t i = 0; i < found.after.ids.size(); ++i) {
    const bool is_random = found.after.targets[i] == static_cast<int64_t>(ThreeWay::kRandom);
    EXPECT_EQ(found.after.ids[i] < 0, is_random);
    if (found.after.targets[i] == static_cast<int64_t>(ThreeWay::kOriginal)) {
      EXPECT_EQ(found.after.ids[i], found.before.ids[i]);
    }
    EXPECT_EQ(found.after.targets[i] == kIgnoredTarget, found.before.ids[i] < HashTokenizer::kSpecials);
  }
}

// A shuffled token of one place comes from the same other place in every row.
TEST(ThreeWay, ABatchHasOnePermutationOfPlaces) {
  const auto tokenizer = hash_tokenizer();
  const Corrupted found = corrupted(*tokenizer, {.rate = 0.5}, TokenEmbeddingKind::kHashProj);
  std::map<size_t, std::set<int64_t>> sources;
  int64_t moved = 0;
  for (size_t i = 0; i < found.after.ids.size(); ++i) {
    if (found.after.targets[i] != static_cast<int64_t>(ThreeWay::kShuffled)) continue;
    sources[i % static_cast<size_t>(found.after.length)].insert(found.after.ids[i]);
    moved += found.after.ids[i] != found.before.ids[i] ? 1 : 0;
  }
  EXPECT_EQ(sources.size(), 200U);
  for (const auto& [place, tokens] : sources) EXPECT_EQ(tokens.size(), 1U) << place;
  EXPECT_GT(moved, 9000);
  const Corrupted by_row =
      corrupted(*tokenizer, {.rate = 0.5, .shuffle = ShuffleKind::kRow}, TokenEmbeddingKind::kHashProj);
  std::set<int64_t> at_first_word;
  for (int64_t row = 0; row < by_row.after.rows; ++row) {
    const auto i = static_cast<size_t>(row * by_row.after.length + 1);
    if (by_row.after.targets[i] == static_cast<int64_t>(ThreeWay::kShuffled)) at_first_word.insert(by_row.after.ids[i]);
  }
  EXPECT_GT(at_first_word.size(), 20U);
}

int64_t ones(const Signature& signature) {
  int64_t count = 0;
  for (int i = 0; i < Signature::kBits; ++i) count += signature.bit(i) ? 1 : 0;
  return count;
}

// Bernoulli(u) bits have weights spread over 0 .. 128; uniform bits have about 64 ones.
TEST(ThreeWay, RandomTokensAreDrawnAsAsked) {
  const auto tokenizer = hash_tokenizer();
  const auto weights = [&](const CorruptionOptions& options, TokenEmbeddingKind kind) {
    std::vector<int64_t> all;
    for (const Signature& one : corrupted(*tokenizer, options, kind).after.loose_signatures) all.push_back(ones(one));
    return all;
  };
  const auto spread = [](const std::vector<int64_t>& all) {
    return std::count_if(all.begin(), all.end(), [](int64_t one) { return one < 32 || one > 96; });
  };
  const auto paper = weights({}, TokenEmbeddingKind::kHashAdd);
  EXPECT_NEAR(static_cast<double>(spread(paper)) / static_cast<double>(paper.size()), 0.5, 0.05);
  EXPECT_EQ(spread(weights({.random = RandomTokens::kBits}, TokenEmbeddingKind::kHashAdd)), 0);
  EXPECT_EQ(spread(weights({}, TokenEmbeddingKind::kHashPool)), 0);
  const Corrupted words = corrupted(*tokenizer, {.random = RandomTokens::kWords}, TokenEmbeddingKind::kHashProj);
  EXPECT_TRUE(words.after.loose_signatures.empty());
  EXPECT_GE(*std::min_element(words.after.ids.begin(), words.after.ids.end()), 0);
  const auto table = corrupted(*small_wordpiece(), {}, TokenEmbeddingKind::kTable);
  EXPECT_TRUE(table.after.loose_signatures.empty());
}

TEST(ThreeWay, TokenizersThatCannotMakeWindows) {
  const std::string message = error_message(
      [] { Corrupter(ByteTokenizer(), {}, TokenEmbeddingKind::kTable, TokenData(), 8, "dir/tokenizer.json"); });
  EXPECT_THAT(message,
              testing::StartsWith("dir/tokenizer.json: three-way training and scoring (--tokenizer wordpiece"));
  EXPECT_THAT(message, testing::HasSubstr("tokenizer (bytes"));
}

TEST(ThreeWay, KindsThatReadLettersGetWords) {
  const auto tokenizer = hash_tokenizer();
  for (const TokenEmbeddingKind kind : {TokenEmbeddingKind::kHashTrigram, TokenEmbeddingKind::kHashCharacters}) {
    const Corrupted found = corrupted(*tokenizer, {}, kind);
    EXPECT_TRUE(found.after.loose_signatures.empty());
    EXPECT_EQ(found.after.ids, corrupted(*tokenizer, {.random = RandomTokens::kWords}, kind).after.ids);
    const auto random = static_cast<size_t>(count_labels(found.after)[2]);
    EXPECT_GT(random, 1000U);
    EXPECT_EQ(*std::min_element(found.after.ids.begin(), found.after.ids.end()), 0);
    EXPECT_THAT(error_message([&] { corrupted(*tokenizer, {.random = RandomTokens::kBits}, kind); }),
                testing::HasSubstr("--random-tokens words"));
  }
}

}  // namespace
}  // namespace headshare
