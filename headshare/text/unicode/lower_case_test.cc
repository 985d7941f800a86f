#include "headshare/text/unicode/lower_case.h"

#include <gmock/gmock.h>

namespace headshare {
namespace {

// Expected values are what Python prints; tests/oracles/test_scores.py goes through all code points.
TEST(LowerCaseTest, AsPythonDoes) {
  EXPECT_EQ(lower_case(""), "");
  EXPECT_EQ(lower_case("Az 09 É Я Ǆ"), "az 09 é я ǆ");
  EXPECT_EQ(lower_case("İstanbul"), "i\u0307stanbul");
  EXPECT_EQ(lower_case("ẞ ß"), "ß ß");
}

TEST(LowerCaseTest, ASigmaIsFinalAtTheEndOfAWordOnly) {
  EXPECT_EQ(lower_case("ΟΔΟΣ"), "οδος");
  EXPECT_EQ(lower_case("ΟΔΟΣ ΣΟΦΟΣ."), "οδος σοφος.");
  EXPECT_EQ(lower_case("Σ"), "σ");
  EXPECT_EQ(lower_case("ΑΣ'Α"), "ασ'α");  // the apostrophe is passed over
  EXPECT_EQ(lower_case("Α.Σ"), "α.ς");
  EXPECT_EQ(lower_case("ⅧΣ 1Σ"), "ⅷς 1σ");  // Roman numerals are cased, digits are not
}

TEST(LowerCaseTest, InvalidBytesStay) {
  EXPECT_EQ(lower_case("A\xFF\xC3"), "a\xFF\xC3");
  EXPECT_EQ(lower_case("\xBFΣ\xBF"), "\xBFσ\xBF");
}

TEST(LowerCaseTest, Classes) {
  for (const int32_t one : {0x41, 0x5F, 0x30, 0xE9, 0xB2, 0x2167, 0x65E5}) EXPECT_TRUE(is_word_character(one)) << one;
  for (const int32_t one : {0x20, 0x2D, 0x301, 0x2019, 0x24B6}) EXPECT_FALSE(is_word_character(one)) << one;
  for (const int32_t one : {0x20, 0x9, 0x1C, 0x85, 0xA0, 0x3000}) EXPECT_TRUE(is_white_space(one)) << one;
  for (const int32_t one : {0x8, 0x180E, 0x200B, 0xFEFF}) EXPECT_FALSE(is_white_space(one)) << one;
}

}  // namespace
}  // namespace headshare
