#include "headshare/data/text/text_cut.h"

#include <gtest/gtest.h>

#include "headshare/base/rng.h"
#include "headshare/data/text/fake_tokenizer.h"

namespace headshare {
namespace {

TEST(TextCutTest, CutsBeforeASpaceElseBehindALineEnd) {
  EXPECT_EQ(last_safe_cut(""), 0u);
  EXPECT_EQ(last_safe_cut("a"), 0u);
  EXPECT_EQ(last_safe_cut("abc"), 0u);
  EXPECT_EQ(last_safe_cut("one two\nthree"), 3u);
  EXPECT_EQ(last_safe_cut("one two three"), 7u);
  EXPECT_EQ(last_safe_cut("one\ntwo\nthree"), 8u);
  EXPECT_EQ(last_safe_cut("one\ntwo "), 4u);          // what follows the last space is not known
  EXPECT_EQ(last_safe_cut("one  two\n\nthree"), 0u);  // runs of white space hang together
  EXPECT_EQ(last_safe_cut("one\r\ntwo"), 0u);
  EXPECT_EQ(last_safe_cut(" one"), 0u);  // nor what stands before the first character
}

TEST(TextCutTest, KnowsUnicodeWhiteSpace) {
  for (const std::string space : {"\u0085", "\u00A0", "\u1680", "\u2003", "\u2028", "\u202F", "\u205F", "\u3000"}) {
    EXPECT_EQ(last_safe_cut("a" + space + "\nb"), 0u) << space;
    EXPECT_EQ(last_safe_cut("a\n" + space + "b"), 0u) << space;
  }
  for (const std::string letter : {"é", "ა", "“", "。", "中", "😀"}) {
    EXPECT_EQ(last_safe_cut(letter + " " + letter), letter.size()) << letter;
  }
  EXPECT_EQ(last_safe_cut("a \xE3"), 0u);  // cut inside a character that may be white space
}

TEST(TextCutTest, BothPartsGiveTheTokensOfTheWhole) {
  const FakeTokenizer tokenizer;
  const std::string letters = "aab.  \n\n\r\t";
  int cuts = 0;
  for (uint64_t round = 0; round < 20'000; ++round) {
    Philox random(stream_key(1, round));
    std::string text;
    for (uint64_t size = random.below(16); size > 0; --size) text += letters[random.below(letters.size())];
    const size_t cut = last_safe_cut(text);
    if (cut == 0) continue;
    ++cuts;
    std::vector<int32_t> parts = tokenizer.encode(text.substr(0, cut));
    const std::vector<int32_t> rest = tokenizer.encode(text.substr(cut));
    parts.insert(parts.end(), rest.begin(), rest.end());
    ASSERT_EQ(parts, tokenizer.encode(text)) << testing::PrintToString(text) << " at " << cut;
  }
  EXPECT_GT(cuts, 5000);
}

}  // namespace
}  // namespace headshare
