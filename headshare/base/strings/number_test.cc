#include "headshare/base/strings/number.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace headshare {
namespace {

TEST(NumberTest, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(number_in<int64_t>("-12"), -12);
  EXPECT_EQ(number_in<int64_t>("9223372036854775807"), std::numeric_limits<int64_t>::max());
  for (const char* none : {"", "-", "+1", " 1", "1 ", "1.0", "0x1", "9223372036854775808"}) {
    EXPECT_EQ(number_in<int64_t>(none), std::nullopt) << none;
  }
  EXPECT_EQ(number_in<double>("-2.5e-1"), -0.25);
  for (const char* none : {"", "1,5", "1e999", "2.5x"}) EXPECT_EQ(number_in<double>(none), std::nullopt) << none;
}

TEST(NumberTest, ExactTextReadsBack) {
  for (const double value : {0.1, 1.0 / 3, 2.4680002, 1e-300, -12345678.9}) {
    EXPECT_EQ(number_in<double>(exact_text(value)), value);
  }
  EXPECT_EQ(exact_text(0.1), "0.1");
}

}  // namespace
}  // namespace headshare
