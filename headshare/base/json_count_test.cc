#include "headshare/base/json_count.h"

#include <gtest/gtest.h>

namespace headshare {
namespace {

TEST(JsonCountTest, OnlyWholeNumbersOf63Bits) {
  EXPECT_EQ(json_count(nlohmann::json::parse("7")), 7);
  EXPECT_EQ(json_count(nlohmann::json::parse("9223372036854775807")), INT64_MAX);
  for (const char* none :
       {"9223372036854775808", "18446744073709551616", "-1", "2.5", "1e19", "\"7\"", "null", "[7]"}) {
    EXPECT_FALSE(json_count(nlohmann::json::parse(none))) << none;
  }
  EXPECT_EQ(json_count({{"step", 3}}, "step"), 3);
  EXPECT_FALSE(json_count({{"step", 3}}, "steps"));
  EXPECT_FALSE(json_count(nlohmann::json::parse("[3]"), "step"));
}

}  // namespace
}  // namespace headshare
