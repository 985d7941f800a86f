#include "headshare/report/statistics/wording.h"

#include <gtest/gtest.h>

namespace headshare {
namespace {

TEST(WordingTest, NamesWithinAWidthKeepBothEnds) {
  EXPECT_EQ(name_within("mhe_add+hash-lsh-proj", 21), "mhe_add+hash-lsh-proj");
  EXPECT_EQ(name_within("collaborative+hash-lsh-proj", 21), "collaborat…h-lsh-proj");
  EXPECT_EQ(name_within("collaborative+hash-lsh-pool", 21), "collaborat…h-lsh-pool");
  EXPECT_EQ(name_in_figure("mhe_mul+hash-md-proj"), "mhe_mul…d-proj");
}

}  // namespace
}  // namespace headshare
