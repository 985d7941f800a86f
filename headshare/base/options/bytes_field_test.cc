#include "headshare/base/options/bytes_field.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

TEST(BytesFieldTest, MemoryAsPeopleWriteIt) {
  EXPECT_EQ(parse_bytes("x", "8GiB"), 8.0 * (1 << 30));
  EXPECT_EQ(parse_bytes("x", "1.5 g"), 1.5 * (1 << 30));
  EXPECT_EQ(parse_bytes("x", "2MB"), 2e6);
  EXPECT_EQ(parse_bytes("x", "640"), 640);
  EXPECT_EQ(parse_bytes("x", "640B"), 640);
  for (const char* wrong : {"", "GiB", "-1GiB", "1 parsec", "1GiBs", "inf", "nan", "0"}) {
    EXPECT_THAT(error_message([&] { parse_bytes("memory-budget", wrong); }), HasSubstr("memory-budget must be"))
        << wrong;
  }
  EXPECT_EQ(parse_bytes("x", "1024PiB"), 1024.0 * 1024 * 1024 * 1024 * 1024 * 1024);
  for (const char* much : {"1025PiB", "1e20TiB", "1e300"}) {
    EXPECT_THAT(error_message([&] { parse_bytes("memory-budget", much); }), HasSubstr("give at most 1024PiB")) << much;
  }
  std::optional<double> budget;
  const Field one = bytes_field("memory-budget", &budget, "");
  EXPECT_EQ(one.value(), "none");
  one.parse("1KiB");
  EXPECT_EQ(budget, 1024);
  one.parse(one.value().dump());
  EXPECT_EQ(budget, 1024);
}

}  // namespace
}  // namespace headshare
