#include "headshare/base/strings/base64.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

TEST(Base64Test, GoesThereAndBack) {
  for (const char* bytes : {"", "a", "ab", "abc", "\xFF\xFE\x80q"}) {
    EXPECT_EQ(from_base64(to_base64(bytes), "x"), bytes);
  }
  EXPECT_EQ(to_base64("light w"), "bGlnaHQgdw==");
  for (const char* damaged : {"a", "ab=c", "a===", "====", "a\xFF\xFF=", "ab c"}) {
    EXPECT_THAT(error_message([&] { from_base64(damaged, "x"); }), HasSubstr("Base64")) << damaged;
  }
}

}  // namespace
}  // namespace headshare
