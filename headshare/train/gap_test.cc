#include "headshare/train/gap.h"

#include <gtest/gtest.h>

#include <cmath>

namespace headshare {
namespace {

TEST(GapTest, RecoveredIsTheShareOfTheGapThatIsClosed) {
  const Gap gap{.start = 6, .teacher = 4};
  EXPECT_EQ(gap.recovered(6), 0);
  EXPECT_EQ(gap.recovered(5), 0.5);
  EXPECT_EQ(gap.recovered(4), 1);
  EXPECT_EQ(gap.recovered(3), 1.5);
  EXPECT_EQ(gap.recovered(7), -0.5);
}

TEST(GapTest, WithoutAGapNothingIsRecovered) {
  EXPECT_FALSE((Gap{.start = 4, .teacher = 4}).recovered(3));
  EXPECT_FALSE((Gap{.start = 3, .teacher = 4}).recovered(3));
  EXPECT_FALSE((Gap{.start = std::nan(""), .teacher = 4}).recovered(3));
  EXPECT_FALSE((Gap{.start = 4}).recovered(3));
  EXPECT_FALSE((Gap{.teacher = 4}).recovered(3));
}

TEST(GapTest, RoundingIsNoGap) {
  EXPECT_FALSE((Gap{.start = 4.0003, .teacher = 4}).recovered(3));
  EXPECT_TRUE((Gap{.start = 4.0005, .teacher = 4}).recovered(3));
  EXPECT_FALSE((Gap{.start = 0.00009, .teacher = 0}).recovered(-1));      // of small losses 1e-4 itself
  EXPECT_FALSE((Gap{.start = -0.9, .teacher = -0.89995}).recovered(-1));  // goals are negative
  EXPECT_FALSE((Gap{.start = HUGE_VAL, .teacher = 4}).recovered(5));
}

TEST(GapTest, IsReadAsItWasWritten) {
  const Gap gap{.start = 6.25};
  const Gap read = gap_from_json(to_json(gap));
  EXPECT_EQ(read.start, 6.25);
  EXPECT_FALSE(read.teacher);
  EXPECT_FALSE(gap_from_json(nlohmann::json()).start);
  EXPECT_FALSE(gap_from_json({{"start", "much"}}).start);
}

}  // namespace
}  // namespace headshare
