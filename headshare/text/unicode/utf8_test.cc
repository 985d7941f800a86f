#include "headshare/text/unicode/utf8.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

TEST(Utf8Test, EveryCodePointReadsBack) {
  for (int32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
    std::string text;
    append_utf8(code_point, &text);
    ASSERT_EQ(valid_utf8_prefix(text), text.size());
    size_t position = 0;
    ASSERT_EQ(next_code_point(text, &position), code_point);
    ASSERT_EQ(position, text.size());
  }
}

// Table 3-7 of the Unicode standard lists what is well formed; these are just outside.
TEST(Utf8Test, IllFormedBytesAreRefusedWhereTheyStand) {
  const std::vector<std::string> bad = {"\x80",         "\xC0\x80",         "\xC1\xBF",     "\xC3",
                                        "\xE0\x9F\xBF", "\xED\xA0\x80",     "\xE2\x82",     "\xF0\x8F\xBF\xBF",
                                        "\xF0\x9F\x98", "\xF4\x90\x80\x80", "\xF5\x80\x80", "\xFF"};
  for (const std::string& bytes : bad) {
    // The bad bytes stand before, within and behind a stretch of eight ASCII bytes.
    for (size_t before = 0; before < 20; ++before) {
      const std::string text = std::string(before, 'x') + bytes + "yyyyyyyyyyyy";
      EXPECT_EQ(valid_utf8_prefix(text), before);
      size_t position = before;
      EXPECT_EQ(next_code_point(text, &position), -1);
      EXPECT_EQ(position, before);
      EXPECT_EQ(valid_utf8_prefix(std::string(before, 'x') + bytes), before);
    }
  }
}

TEST(Utf8Test, ErrorsNameTheByte) {
  EXPECT_NO_THROW(check_utf8("caf\xC3\xA9", "f"));
  EXPECT_THAT(error_message([] { check_utf8("caf\xE9 au lait", "f.txt"); }),
              testing::StartsWith("f.txt: not valid UTF-8 at byte 3 of 12 (0xE9)"));
}

TEST(Utf8Test, CodePointsAreShownReadably) {
  EXPECT_EQ(show_code_point('A'), "U+0041 'A'");
  EXPECT_EQ(show_code_point(0xE9), "U+00E9 'é'");
  EXPECT_EQ(show_code_point(0x07), "U+0007");
  EXPECT_EQ(show_code_point(0x1F600), "U+1F600 '😀'");
}

}  // namespace
}  // namespace headshare
