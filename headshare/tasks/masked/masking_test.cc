#include "headshare/tasks/masked/masking.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>

#include "headshare/base/testing.h"
#include "headshare/data/text/batcher.h"
#include "headshare/tasks/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// The vocabulary begins with [PAD] [UNK] [CLS] [SEP] [MASK]; then come the words.
constexpr int64_t kUnknown = 1, kClassify = 2, kSeparate = 3, kMask = 4, kFirstWord = 5;

// Makes rows of `length` random ordinary tokens, masked.
WindowBatch masked(const Masker& masker, int64_t rows, int64_t length, int64_t vocabulary, uint64_t seed = 1) {
  Philox random(seed);
  WindowBatch batch;
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> tokens;
    for (int64_t i = 0; i < length; ++i) {
      tokens.push_back(kFirstWord + static_cast<int64_t>(random.below(static_cast<uint64_t>(vocabulary - kFirstWord))));
    }
    masker.add_row(tokens, &batch);
  }
  masker.pad(&batch);
  for (int64_t row = 0; row < rows; ++row) masker.mask_row(row, random, &batch);
  return batch;
}

TEST(Masking, AsksForItsShareEightyTenTen) {
  const auto tokenizer = small_wordpiece();
  const Masker masker(*tokenizer, {.rate = 0.15});
  const WindowBatch batch = masked(masker, 400, 100, tokenizer->vocabulary_size());
  EXPECT_EQ(batch.length, 102);
  EXPECT_EQ(batch.scored, 400 * 15);
  std::map<std::string, int> fates;
  std::map<int64_t, int> places;
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    const int64_t target = batch.targets[i];
    if (target == kIgnoredTarget) {
      EXPECT_NE(batch.ids[i], kMask);
      continue;
    }
    EXPECT_GE(target, kFirstWord);
    EXPECT_GE(batch.ids[i], kMask);
    ++fates[batch.ids[i] == kMask ? "masked" : batch.ids[i] == target ? "kept" : "other"];
    ++places[static_cast<int64_t>(i) % batch.length];
  }
  // Tolerances are four standard deviations of a binomial of 6000. A random token may be the one that was there.
  const double words = static_cast<double>(tokenizer->vocabulary_size() - kFirstWord);
  EXPECT_NEAR(fates["masked"], 4800, 4 * std::sqrt(6000 * 0.8 * 0.2));
  EXPECT_NEAR(fates["other"], 600 * (1 - 1 / words), 4 * std::sqrt(6000 * 0.1 * 0.9));
  EXPECT_NEAR(fates["kept"], 600 * (1 + 1 / words), 4 * std::sqrt(6000 * 0.1 * 0.9));
  EXPECT_EQ(places.size(), 100u) << "every place but [CLS] and [SEP]";
  for (const auto& [place, count] : places) EXPECT_NEAR(count, 60, 4 * std::sqrt(60)) << place;
}

TEST(Masking, SpecialTokensAreNeverAskedFor) {
  const auto tokenizer = small_wordpiece();
  const Masker masker(*tokenizer, {.rate = 0.9});
  WindowBatch batch;
  masker.add_row(std::vector<int64_t>{kUnknown, kSeparate, 7, kUnknown}, &batch);
  masker.add_row(std::vector<int64_t>{kUnknown}, &batch);
  masker.pad(&batch);
  EXPECT_TRUE(batch.padded());
  EXPECT_THAT(batch.lengths, ElementsAre(6, 3));
  Philox random(1);
  for (int64_t row : {0, 1}) masker.mask_row(row, random, &batch);
  EXPECT_EQ(batch.scored, 1);
  EXPECT_EQ(batch.targets[3], 7);
  EXPECT_EQ(batch.ids[0], kClassify);
  EXPECT_EQ(batch.ids[5], kSeparate);
  EXPECT_EQ(batch.ids[8], kSeparate);
  EXPECT_THAT(std::vector<int64_t>(batch.ids.begin() + 9, batch.ids.end()), Each(0));
}

// There are words of 1, 2 and 3 tokens: a word is masked whole or not at all.
TEST(Masking, WholeWords) {
  const auto tokenizer = small_wordpiece();
  const std::vector<int32_t> ids = tokenizer->encode("a fox foxes dogs foxing a foxesing a a fox foxing the");
  const std::vector<int64_t> row(ids.begin(), ids.end());
  const Masker masker(*tokenizer, {.rate = 0.3, .whole_words = true});
  std::set<int64_t> counts;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    WindowBatch batch;
    masker.add_row(row, &batch);
    masker.pad(&batch);
    Philox random(seed);
    masker.mask_row(0, random, &batch);
    counts.insert(batch.scored);
    for (size_t i = 2; i + 1 < batch.targets.size(); ++i) {
      if (!tokenizer->continues_word(ids[i - 1])) continue;
      EXPECT_EQ(batch.targets[i] == kIgnoredTarget, batch.targets[i - 1] == kIgnoredTarget) << i;
    }
  }
  const auto wanted = std::llround(0.3 * static_cast<double>(row.size()));
  EXPECT_EQ(*counts.rbegin(), wanted);
  EXPECT_GE(*counts.begin(), wanted - 2);
}

TEST(Masking, AWordThatIsTooLongIsMaskedInPart) {
  const auto tokenizer = small_wordpiece();
  std::string word = "fox";
  for (int i = 0; i < 45; ++i) word += "es";
  const std::vector<int32_t> ids = tokenizer->encode(word);
  ASSERT_GT(ids.size(), 40u);
  const Masker masker(*tokenizer, {.rate = 0.15, .whole_words = true});
  WindowBatch batch;
  masker.add_row(std::vector<int64_t>(ids.begin(), ids.end()), &batch);
  masker.pad(&batch);
  Philox random(1);
  masker.mask_row(0, random, &batch);
  EXPECT_EQ(batch.scored, std::llround(0.15 * static_cast<double>(ids.size())));
}

TEST(Masking, WindowsCoverTheTextOnce) {
  const auto tokenizer = small_wordpiece();
  const Masker masker(*tokenizer, {});
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 23; ++i) tokens.push_back(static_cast<int32_t>(kFirstWord) + i % 7);
  const DisjointWindows windows(TokenData::from_memory(tokens, 100), masker, /*context=*/12);
  EXPECT_EQ(windows.windows(), 3);
  WindowBatch batch = windows.rows(0, 3);
  EXPECT_THAT(batch.lengths, ElementsAre(12, 12, 5));
  masker.pad(&batch);
  std::vector<int64_t> seen;
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t i = 1; i + 1 < batch.lengths[static_cast<size_t>(row)]; ++i) {
      seen.push_back(batch.ids[static_cast<size_t>(row * batch.length + i)]);
    }
  }
  EXPECT_EQ(seen, std::vector<int64_t>(tokens.begin(), tokens.end()));
  EXPECT_THAT(error_message([&] { DisjointWindows(TokenData(), masker, 12); }), HasSubstr("no tokens"));
  EXPECT_THAT(error_message([&] { DisjointWindows(TokenData(), masker, 2); }), HasSubstr("no room for text"));
}

TEST(Masking, TheEntropyOfTheUnigrams) {
  const auto tokenizer = small_wordpiece();
  const Masker masker(*tokenizer, {});
  const auto entropy = [&](const std::vector<int32_t>& tokens) {
    return unigram_entropy(TokenData::from_memory(tokens, 10), masker, tokenizer->vocabulary_size());
  };
  EXPECT_NEAR(entropy({5, 6, 7, 8}), std::log(4), 1e-12);
  EXPECT_NEAR(entropy({5, 5, 5, 1, 1, 6, 3}), -(0.75 * std::log(0.75) + 0.25 * std::log(0.25)), 1e-12);
  EXPECT_NEAR(entropy(std::vector<int32_t>(200000, 9)), 0, 1e-9);
  EXPECT_THAT(error_message([&] { entropy({1, 1}); }), HasSubstr("unknown to the tokenizer"));
}

TEST(Masking, RowsOfABatchHaveTheirOwnRandomNumbers) {
  const auto tokenizer = small_wordpiece();
  const Masker masker(*tokenizer, {});
  const Batch text{.rows = 2, .length = 3, .inputs = {5, 6, 7, 8, 9, 5}};
  std::vector<uint32_t> drawn;
  const auto change = [&](int64_t row, Philox& random, WindowBatch* batch) {
    drawn.push_back(random.next_word());
    batch->targets[static_cast<size_t>(row * batch->length + 1)] = row;
  };
  const WindowBatch batch = changed_windows(text, masker, 3, change);
  EXPECT_EQ(std::vector<int64_t>(batch.ids.begin() + 1, batch.ids.begin() + 4), std::vector<int64_t>({5, 6, 7}));
  EXPECT_EQ(std::vector<int64_t>(batch.ids.begin() + 6, batch.ids.begin() + 9), std::vector<int64_t>({8, 9, 5}));
  EXPECT_EQ(batch.lengths, std::vector<int64_t>({5, 5}));
  EXPECT_EQ(batch.targets.at(6), 1);
  ASSERT_EQ(drawn.size(), 2U);
  EXPECT_NE(drawn[0], drawn[1]);
  changed_windows(text, masker, 3, change);
  EXPECT_EQ(drawn[2], drawn[0]);
}

TEST(Masking, TokenizersThatCannotMask) {
  EXPECT_THAT(
      error_message([] { Masker(ByteTokenizer(), {}); }),
      AllOf(HasSubstr("masked-LM training"), HasSubstr("tokenizer (bytes"), HasSubstr("--tokenizer wordpiece")));
}

}  // namespace
}  // namespace headshare
