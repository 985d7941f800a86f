#include "headshare/base/strings/visible.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headshare {
namespace {

TEST(VisibleTest, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(visible("a\x1B[31mb\r\x07\x7F"), "a\\x1b[31mb\\x0d\\x07\\x7f");
  EXPECT_EQ(visible("\xC2\x9B 31m \xC2\x80\xC2\x9F\xC2\xA0"), "\\x9b 31m \\x80\\x9f\xC2\xA0");
  EXPECT_EQ(visible(std::string_view("\0", 1)), "\\x00");
}

TEST(VisibleTest, TextStays) {
  const std::string text = "Zo\xC3\xAB \xE4\xB8\xAD \xF0\x9F\x98\x80 \\ \\x1b";
  EXPECT_EQ(visible(text), text);
  EXPECT_EQ(visible_line(text), text);
}

TEST(VisibleTest, LinesAndTabsStayOnlyWhereThereMayBeLines) {
  EXPECT_EQ(visible("a\n\tb"), "a\n\tb");
  EXPECT_EQ(visible_line("a\n\tb"), "a\\n\\tb");
}

TEST(VisibleTest, BytesThatAreNoUtf8AreWrittenOut) {
  EXPECT_EQ(visible("\x9B"
                    "1m"),
            "\\x9b1m");
  EXPECT_EQ(visible("\xC3"), "\\xc3");
  EXPECT_EQ(visible("\xE4\xB8 \xF0\x9F\x1B"), "\\xe4\\xb8 \\xf0\\x9f\\x1b");
}

TEST(VisibleTest, LongTextLosesItsMiddle) {
  EXPECT_EQ(shortened("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shortened("abcdefghijk", 10), "abcdefgh ...(1 bytes)... jk");
  EXPECT_EQ(shortened("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 5), "\xC3\xA9\xC3\xA9 ...(6 bytes)... ");
}

TEST(VisibleTest, LabelsAreOneLineOfSoManyCharacters) {
  EXPECT_EQ(printable("a\r\nb\tc\x1B"), "a  b c\\x1b");
  EXPECT_EQ(abbreviated("abc", 3), "abc");
  EXPECT_EQ(abbreviated("abcd", 3), "ab…");
  EXPECT_EQ(abbreviated("\xC3\xA9\xC3\xA9\n\xC3\xA9", 3), "\xC3\xA9\xC3\xA9…");
}

TEST(VisibleTest, NoMessageIsAScreenful) {
  const std::string message = "no model at /a/b: it does not exist";
  EXPECT_EQ(message_line(message), message);
  const std::string word = message_line("no model at " + std::string(70000, 'x') + ": it does not exist");
  EXPECT_LT(word.size(), 600);
  EXPECT_TRUE(word.starts_with("no model at xxx") && word.ends_with("xxx: it does not exist")) << word;
  std::string words = "unexpected argument '";
  for (int i = 0; i < 30000; ++i) words += "a ";
  const std::string cut = message_line(words + "'; `--help` shows what it takes");
  EXPECT_LT(cut.size(), 4100);
  EXPECT_TRUE(cut.ends_with("`--help` shows what it takes"));
}

TEST(VisibleTest, TwiceIsAsOnce) {
  for (const char* text : {"\x1B[0m", "\xFF", "\xC2\x85", "a\nb"}) {
    EXPECT_EQ(visible(visible(text)), visible(text));
    EXPECT_EQ(visible_line(visible_line(text)), visible_line(text));
  }
}

TEST(VisibleTest, JsonStaysTheSameValue) {
  const nlohmann::json value = {{"a\x7F", "\x1B\xC2\x9B\xC2\x80 \xC3\xA9"}};
  const std::string shown = visible_json(value.dump(2));
  EXPECT_EQ(nlohmann::json::parse(shown), value);
  EXPECT_EQ(shown, "{\n  \"a\\u007f\": \"\\u001b\\u009b\\u0080 \xC3\xA9\"\n}");
}

}  // namespace
}  // namespace headshare
