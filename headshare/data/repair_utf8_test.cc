#include "headshare/data/repair_utf8.h"

#include <gtest/gtest.h>

namespace headshare {
namespace {

#define FFFD "\xEF\xBF\xBD"

// The expected texts are Python's bytes.decode("utf-8", "replace").
TEST(RepairUtf8Test, ReplacesEachMaximalSubpart) {
  EXPECT_EQ(replace_invalid_utf8(""), "");
  EXPECT_EQ(replace_invalid_utf8("gr\xC3\xB6\xC3\x9F"
                                 "er \xF0\x9F\x98\x80"),
            "größer 😀");
  EXPECT_EQ(replace_invalid_utf8("gr\xF6sser"), "gr" FFFD "sser");                         // Latin-1
  EXPECT_EQ(replace_invalid_utf8("a\xE2\x82z"), "a" FFFD "z");                             // cut short: one
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98"), FFFD);                                   // at the end too
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), FFFD FFFD FFFD);                         // a surrogate
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF|\xE0\x80\xAF"), FFFD FFFD "|" FFFD FFFD FFFD);  // overlong
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80 \xFF"), FFFD FFFD FFFD FFFD " " FFFD);  // past U+10FFFF
  EXPECT_EQ(replace_invalid_utf8("\x80\xBF"), FFFD FFFD);                                  // no lead
}

TEST(RepairUtf8Test, CutsBetweenCharacters) {
  const std::string text = "aö€😀";  // 1 + 2 + 3 + 4 bytes
  const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (size_t most = 1; most < std::size(expected); ++most) {
    EXPECT_EQ(character_boundary(text, most), expected[most]) << most;
  }
  EXPECT_EQ(character_boundary(std::string(20, '\x80'), 10), 10u);
}

}  // namespace
}  // namespace headshare
