#include "headshare/tasks/finetune/rate_search.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::Pair;

// Makes a model whose validation goal is `goal`.
FineTunedModel model_with(double rate, int64_t seed, double goal) {
  return {.learning_rate = rate, .seed = seed, .parts = {{.part = "validation", .goal = goal}}};
}

std::string failed(double rate, const Diverged& reason) { return join_text(rate, ": ", reason.what()); }

TEST(RateSearchTest, TheBestMeanOverSeedsWins) {
  const auto train = [](double rate, int64_t seed) {
    return model_with(rate, seed, rate == 2 ? 0.6 : rate == 1 ? 0.1 * static_cast<double>(seed) : 0.6);
  };
  const RateSearch found = search_rates({1, 2, 3}, {5, 9}, train, failed);
  EXPECT_THAT(found.goals, ElementsAre(Pair(1, testing::DoubleEq(0.7)), Pair(2, 0.6), Pair(3, 0.6)));
  ASSERT_EQ(found.models.size(), 2u);
  EXPECT_EQ(found.models[0].learning_rate, 1);
  EXPECT_EQ(found.models[1].seed, 9);
  EXPECT_EQ(search_rates({3, 2}, {1}, train, failed).models[0].learning_rate, 3);  // the first among equals
}

TEST(RateSearchTest, ADivergedRateIsLeftOut) {
  const auto train = [](double rate, int64_t seed) {
    if (rate > 1 && seed == 2) throw Diverged("too fast");
    return model_with(rate, seed, rate);
  };
  const RateSearch found = search_rates({1, 7}, {1, 2}, train, failed);
  EXPECT_THAT(found.failures, ElementsAre("7: too fast"));
  EXPECT_THAT(found.goals, ElementsAre(Pair(1, 1.0)));
  EXPECT_EQ(found.models.size(), 2u);
  EXPECT_TRUE(search_rates({7}, {2}, train, failed).models.empty());
}

TEST(RateSearchTest, AModelWithoutAGoalIsBetterThanNone) {
  const auto train = [](double rate, int64_t seed) { return model_with(rate, seed, std::nan("")); };
  EXPECT_EQ(search_rates({1}, {1}, train, failed).models.size(), 1u);
}

TEST(RateSearchTest, OtherErrorsEndIt) {
  const auto train = [](double, int64_t) -> FineTunedModel { throw Error("no such file"); };
  EXPECT_EQ(error_message([&] { search_rates({1, 2}, {1}, train, failed); }), "no such file");
}

}  // namespace
}  // namespace headshare
