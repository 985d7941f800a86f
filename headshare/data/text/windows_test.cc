#include "headshare/data/text/windows.h"

#include <gmock/gmock.h>

#include "headshare/data/text/counting_tokens.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(WindowsTest, EveryTokenIsScoredOnceWithEnoughBeforeIt) {
  for (int64_t size = 2; size < 40; ++size) {
    for (int64_t context = 1; context < 12; ++context) {
      for (int64_t stride = 1; stride <= context; ++stride) {
        const EvaluationWindows windows(counting(size), {.batch_size = 3, .context = context, .stride = stride});
        std::vector<int> scored(static_cast<size_t>(size));
        int64_t total = 0;
        for (int64_t i = 0; i < windows.batches(); ++i) {
          const Batch batch = windows.batch(i);
          ASSERT_LE(batch.length, context);
          ASSERT_EQ(batch.rows, i + 1 < windows.batches() ? 3 : windows.windows() - 3 * i);
          for (size_t k = 0; k < batch.targets.size(); ++k) {
            if (batch.targets[k] == kIgnoredTarget) continue;
            const int64_t target = batch.targets[k];
            const auto column = static_cast<int64_t>(k) % batch.length;
            ++scored.at(static_cast<size_t>(target));
            ++total;
            ASSERT_EQ(batch.inputs[k], target - 1);
            // A target has `column + 1` tokens of context: all there are, or at least T - stride + 1.
            ASSERT_TRUE(column + 1 == target || column + 1 > context - stride);
          }
          total -= batch.scored;
        }
        ASSERT_EQ(total, 0);
        ASSERT_EQ(windows.scored(), size - 1);
        ASSERT_EQ(scored[0], 0);
        ASSERT_THAT(std::vector<int>(scored.begin() + 1, scored.end()), testing::Each(1))
            << size << " " << context << " " << stride;
      }
    }
  }
}

TEST(WindowsTest, DisjointWindowsArePaddedAtTheEnd) {
  const EvaluationWindows windows(counting(8), {.batch_size = 2, .context = 5});
  ASSERT_EQ(windows.windows(), 2);
  const Batch batch = windows.batch(0);
  EXPECT_THAT(batch.inputs, ElementsAre(0, 1, 2, 3, 4, 5, 6, 0, 0, 0));
  EXPECT_THAT(batch.targets, ElementsAre(1, 2, 3, 4, 5, 6, 7, -100, -100, -100));
  EXPECT_EQ(batch.scored, 7);
}

// This is the example of Hugging Face's guide "Perplexity of fixed-length models": the last `stride` targets.
TEST(WindowsTest, LaterWindowsScoreTheirLastTokens) {
  const EvaluationWindows windows(counting(9), {.batch_size = 9, .context = 4, .stride = 2});
  const Batch batch = windows.batch(0);
  EXPECT_THAT(batch.inputs, ElementsAre(0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7));
  EXPECT_THAT(batch.targets, ElementsAre(1, 2, 3, 4, -100, -100, 5, 6, -100, -100, 7, 8));
}

TEST(WindowsTest, MistakesAreNamed) {
  EXPECT_THAT(error_message([] { EvaluationWindows(counting(1), {}); }), HasSubstr("a text of 1 tokens"));
  EXPECT_THAT(error_message([] { EvaluationWindows(counting(9), {.context = 4, .stride = 5}); }), HasSubstr("not 5"));
  EXPECT_THAT(error_message([] { EvaluationWindows(counting(9), {.context = 4, .stride = -1}); }), HasSubstr("not -1"));
  EXPECT_THAT(error_message([] { EvaluationWindows(counting(9), {.context = 0}); }), HasSubstr("at least 1"));
  EXPECT_THAT(error_message([] { EvaluationWindows(counting(9), {}).batch(1); }), HasSubstr("no batch 1 among 1"));
}

}  // namespace
}  // namespace headshare
