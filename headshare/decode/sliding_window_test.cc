#include "headshare/decode/sliding_window.h"

#include <gmock/gmock.h>

#include <memory>
#include <numeric>

namespace headshare {
namespace {

using testing::ElementsAre;

// These models note what each of them was fed.
struct Models {
  std::vector<std::vector<int32_t>> seen;

  std::function<StepFunction()> begin() {
    return [this] {
      seen.emplace_back();
      return [this, mine = seen.size() - 1](std::span<const int32_t> fresh) {
        seen[mine].insert(seen[mine].end(), fresh.begin(), fresh.end());
        // The next token is the number behind the last one.
        std::vector<float> logits(100, 0.0F);
        logits.at(static_cast<size_t>(fresh.back()) + 1) = 100;
        return logits;
      };
    };
  }
};

Generated count_on(SlidingWindow& window, std::vector<int32_t> prompt, int64_t tokens) {
  return generate(std::ref(window),
                  {.prompt = std::move(prompt), .sampling = {.greedy = true, .max_new_tokens = tokens}});
}

TEST(SlidingWindowTest, WithinTheContextNothingSlides) {
  Models models;
  SlidingWindow window(models.begin(), 4);
  const Generated made = count_on(window, {0, 1}, 3);  // the last token is not fed back
  EXPECT_THAT(made.tokens, ElementsAre(2, 3, 4));
  EXPECT_THAT(models.seen, ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_EQ(window.slides(), 0);
}

TEST(SlidingWindowTest, AFullContextGoesOnWithItsLastHalf) {
  Models models;
  SlidingWindow window(models.begin(), 4);
  const Generated made = count_on(window, {0, 1}, 8);
  EXPECT_THAT(made.tokens, ElementsAre(2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(made.reason, StopReason::kMaxNewTokens);
  EXPECT_THAT(models.seen, ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(3, 4, 5, 6), ElementsAre(6, 7, 8)));
  EXPECT_EQ(window.slides(), 2);
}

TEST(SlidingWindowTest, ALongPromptKeepsItsLastPart) {
  Models models;
  SlidingWindow window(models.begin(), 4);
  std::vector<int32_t> prompt(10);
  std::iota(prompt.begin(), prompt.end(), 0);
  const Generated made = count_on(window, prompt, 2);
  EXPECT_THAT(made.tokens, ElementsAre(10, 11));
  EXPECT_THAT(models.seen, ElementsAre(ElementsAre(6, 7, 8, 9), ElementsAre(9, 10)));
  EXPECT_EQ(window.slides(), 1);
}

TEST(SlidingWindowTest, AContextOfOneTokenSeesTheLastOne) {
  Models models;
  SlidingWindow window(models.begin(), 1);
  EXPECT_THAT(count_on(window, {5, 6}, 3).tokens, ElementsAre(7, 8, 9));
  EXPECT_THAT(models.seen, ElementsAre(ElementsAre(6), ElementsAre(7), ElementsAre(8)));
}

// The sampler sees all tokens, not only those in the window.
TEST(SlidingWindowTest, PenaltiesReachBehindTheWindow) {
  const auto flat = [] { return [](std::span<const int32_t>) { return std::vector<float>{5, 4, 3, 2, 1, 0.5}; }; };
  SlidingWindow window(flat, 2);
  const Generated made = generate(
      std::ref(window), {.prompt = {0}, .sampling = {.greedy = true, .repetition_penalty = 100, .max_new_tokens = 5}});
  EXPECT_THAT(made.tokens, ElementsAre(1, 2, 3, 4, 5));
}

}  // namespace
}  // namespace headshare
