#include "headshare/base/strings/wrap.h"

#include <gtest/gtest.h>

namespace headshare {
namespace {

TEST(WrapTest, CutsAtBlanksOnly) {
  EXPECT_EQ(wrap("aa bb cc", 5, 0), "aa bb\ncc");
  EXPECT_EQ(wrap("aa bb cc", 7, 2), "aa bb\n  cc");
  EXPECT_EQ(wrap("abcdefgh ij", 4, 0), "abcdefgh\nij");
  EXPECT_EQ(wrap("", 4, 0), "");
}

}  // namespace
}  // namespace headshare
