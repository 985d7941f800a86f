#include "headshare/bench/timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "headshare/base/error.h"

namespace headshare {
namespace {

TEST(Timing, MedianAndMinimum) {
  const Timing odd = summarise({5, 1, 3});
  EXPECT_EQ(odd.median_ms, 3);
  EXPECT_EQ(odd.minimum_ms, 1);
  EXPECT_EQ(odd.repetitions, 3);
  EXPECT_EQ(summarise({4, 1, 2, 100}).median_ms, 3);
  EXPECT_EQ(summarise({7}).median_ms, 7);
  EXPECT_THROW(summarise({}), Error);
}

TEST(Timing, ContendersTakeTurnsInChangingOrder) {
  std::string order;
  const auto says = [&](char c) { return [&order, c] { order += c; }; };
  const TurnOptions options = {.least_rounds = 3, .most_rounds = 3, .seconds = 10, .between = [&] { order += '.'; }};
  const auto timings = take_turns({says('a'), says('b'), says('c')}, options);
  EXPECT_EQ(order,
            ".a.b.c"  // once without being timed
            ".a.b.c.b.c.a.c.a.b");
  ASSERT_EQ(timings.size(), 3U);
  for (const Timing& one : timings) EXPECT_EQ(one.repetitions, 3);
}

TEST(Timing, LongActionsAreRepeatedLessOften) {
  int runs = 0;
  const auto slow = [&] {
    ++runs;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  const auto timings = take_turns({slow}, {.least_rounds = 2, .most_rounds = 1000, .seconds = 0.001});
  EXPECT_EQ(runs, 3);
  EXPECT_GE(timings[0].minimum_ms, 2);
  EXPECT_THROW(take_turns({slow}, {.least_rounds = 0}), Error);
}

}  // namespace
}  // namespace headshare
