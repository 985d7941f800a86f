#include "headshare/base/strings/format.h"

#include <gtest/gtest.h>

namespace headshare {
namespace {

TEST(FormatTest, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(640), "640 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(3.0 * (1 << 30)), "3.0 GiB");
}

TEST(FormatTest, Durations) {
  EXPECT_EQ(format_duration(0.85), "850 ms");
  EXPECT_EQ(format_duration(12.2), "12 s");
  EXPECT_EQ(format_duration(185), "3:05");
  EXPECT_EQ(format_duration(7800), "2:10:00");
  EXPECT_EQ(format_duration(3.5 * 86400), "3 days");
  EXPECT_EQ(format_duration(1e8 * 86400), "100.00M days");
}

TEST(FormatTest, Counts) {
  EXPECT_EQ(format_count(7), "7");
  EXPECT_EQ(format_count(-7), "-7");
  EXPECT_EQ(format_count(27648), "27,648");
  EXPECT_EQ(format_count(8875008), "8.88M");
  EXPECT_EQ(format_count(2.5e9), "2.50G");
}

TEST(FormatTest, Percents) {
  EXPECT_EQ(percent_text(0.3666), "37%");
  EXPECT_EQ(percent_text(0.0412), "4.1%");
  EXPECT_EQ(percent_text(0.12346, 2), "12.35%");
  EXPECT_EQ(percent_text(0.5, 1), "50.0%");
  EXPECT_EQ(percent_text(0.996, 0), "100%");
  EXPECT_EQ(percent_text(0.02), "2%");
  EXPECT_EQ(percent_text(0.0003), "0.03%");
  EXPECT_EQ(percent_text(1e-6), "less than 0.01%");
  EXPECT_EQ(percent_text(0), "0%");
  EXPECT_EQ(percent_text(1), "100%");
}

TEST(FormatTest, Lists) {
  EXPECT_EQ(list_text({}), "");
  EXPECT_EQ(list_text({"a"}), "a");
  EXPECT_EQ(list_text({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(list_text({"a", "b"}, "or"), "a or b");
}

}  // namespace
}  // namespace headshare
