#include "headshare/text/unicode/composition.h"

#include <gmock/gmock.h>

namespace headshare {
namespace {

std::string nfc(const std::string& text) { return std::string(ComposedText(text).text()); }

// tests/oracles/test_decoder_tokenizers.py compares more with Hugging Face tokenizers.
TEST(CompositionTest, LettersAndMarksCompose) {
  EXPECT_EQ(nfc("e\u0301a\u0308x"), "\u00E9\u00E4x");
  EXPECT_EQ(nfc("q\u0307\u0323"), "q\u0323\u0307") << "marks are in canonical order";
  EXPECT_EQ(nfc("s\u0307\u0323"), "\u1E69") << "and compose one after another";
  EXPECT_EQ(nfc("a\u0315\u0301"), "\u00E1\u0315");
  EXPECT_EQ(nfc("\u212B\u2126\u0344"), "\u00C5\u03A9\u0308\u0301") << "these do not stay what they are";
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C") << "nor do those that are excluded from composition";
  EXPECT_EQ(nfc("\u1100\u1161\u11A8 \uAC00\u11A8"), "\uAC01 \uAC01");
}

TEST(CompositionTest, OtherTextStays) {
  for (const std::string& text : {std::string(), std::string("plain \u00E9 \u65E5\u672C \uAC00\U0001F600"),
                                  std::string("\u0301"), std::string("x\u0301\u0323").substr(0, 1)}) {
    EXPECT_EQ(ComposedText(text).text().data(), text.data()) << "no copy of " << text;
  }
  EXPECT_EQ(nfc("e\xFF\u0301"), "e\xFF\u0301") << "nothing composes across bytes that are no UTF-8";
  EXPECT_EQ(nfc("e\u0301\xC3"), "\u00E9\xC3");
  EXPECT_EQ(nfc("\u02FF\u0300"), "\u02FF\u0300") << "on both sides of the first mark";
  EXPECT_EQ(nfc("a\u0300"), "\u00E0") << "the first mark has the smallest first byte";
  EXPECT_EQ(nfc("\U0002FA1D\U0002FA1E"), "\U0002A600\U0002FA1E") << "the last character that decomposes";
  EXPECT_EQ(nfc("\U0010FFFFe\u0301"), "\U0010FFFF\u00E9");
}

TEST(CompositionTest, SpansLeadBackToTheOriginal) {
  const std::string text = "xe\u0301ye\u0301\u0323";  // x | e 2 | y | e 2 2
  const ComposedText composed(text);
  ASSERT_EQ(composed.text(), "x\u00E9y\u1EB9\u0301");  // 1 2 1 3 2
  const auto original = [&](size_t begin, size_t end) {
    const TextSpan span = composed.original({begin, end});
    return text.substr(span.begin, span.end - span.begin);
  };
  EXPECT_EQ(original(0, 1), "x");
  EXPECT_EQ(original(1, 3), "e\u0301");
  EXPECT_EQ(original(2, 3), "e\u0301") << "a part of a character shares its span";
  EXPECT_EQ(original(3, 4), "y");
  EXPECT_EQ(original(4, 9), "e\u0301\u0323");
  EXPECT_EQ(original(0, 9), text);
}

}  // namespace
}  // namespace headshare
