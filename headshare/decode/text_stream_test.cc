#include "headshare/decode/text_stream.h"

#include <gmock/gmock.h>

#include "headshare/base/error.h"

namespace headshare {
namespace text_stream_test {

using Tokens = std::vector<int32_t>;

// Each token is a byte: decoding is what a lossless byte tokenizer does.
std::string decode_bytes(std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) text += static_cast<char>(id);
  return text;
}

// Decodes as decode_bytes() does, but an unfinished code point at the end reads as U+FFFD.
std::string decode_replacing(std::span<const int32_t> ids) {
  std::string text = decode_bytes(ids);
  const size_t unfinished = unfinished_utf8(text);
  if (unfinished == 0) return text;
  text.resize(text.size() - unfinished);
  return text + "\uFFFD";
}

// Tokens are words, joined by single spaces.
std::string decode_words(std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) text += (text.empty() ? "w" : " w") + std::to_string(id);
  return text;
}

std::vector<std::string> pieces(const DecodeFunction& decode, const Tokens& prompt, std::string_view bytes) {
  TextStream stream(decode, prompt);
  std::vector<std::string> result;
  for (const char c : bytes) result.push_back(stream.push(static_cast<unsigned char>(c)));
  result.push_back(stream.finish());
  return result;
}

TEST(TextStreamTest, UnfinishedUtf8) {
  EXPECT_EQ(unfinished_utf8(""), 0u);
  EXPECT_EQ(unfinished_utf8("a"), 0u);
  EXPECT_EQ(unfinished_utf8("é"), 0u);
  EXPECT_EQ(unfinished_utf8("a\xC3"), 1u);
  EXPECT_EQ(unfinished_utf8("\xE2\x82"), 2u);
  EXPECT_EQ(unfinished_utf8("\xF0\x9F\x98"), 3u);
  EXPECT_EQ(unfinished_utf8("😀"), 0u);
  EXPECT_EQ(unfinished_utf8("\xFF"), 0u);              // begins nothing
  EXPECT_EQ(unfinished_utf8("\x80\x80\x80\x80"), 0u);  // continues nothing
  EXPECT_EQ(unfinished_utf8("\xC0"), 0u);              // begins only overlong forms
}

TEST(TextStreamTest, CodePointsComeWhole) {
  for (const DecodeFunction& decode : {DecodeFunction(decode_bytes), DecodeFunction(decode_replacing)}) {
    EXPECT_THAT(pieces(decode, {'x'}, "aé😀b"), testing::ElementsAre("a", "", "é", "", "", "", "😀", "b", ""));
  }
}

TEST(TextStreamTest, WhatWaitsComesAtTheEnd) {
  EXPECT_THAT(pieces(decode_bytes, {}, "a\xE2\x82"), testing::ElementsAre("a", "", "", "\xE2\x82"));
}

TEST(TextStreamTest, BytesThatAreNoTextDoNotWaitForever) {
  const DecodeFunction all_replaced = [](std::span<const int32_t> ids) {
    std::string text;
    for (size_t i = 0; i < ids.size(); ++i) text += "\uFFFD";
    return text;
  };
  EXPECT_THAT(pieces(all_replaced, {}, "12345"),
              testing::ElementsAre("", "", "", "\uFFFD\uFFFD\uFFFD\uFFFD", "", "\uFFFD"));
}

// The prompt ends in the middle of a code point that reads as U+FFFD, of which the real character
// (U+FF41, EF BD 81) shares the first byte.
TEST(TextStreamTest, APromptMayEndInsideACodePoint) {
  EXPECT_THAT(pieces(decode_replacing, {'x', 0xEF}, "\xBD\x81y"), testing::ElementsAre("", "ａ", "y", ""));
  EXPECT_THAT(pieces(decode_bytes, {'x', 0xC3}, "\xA9y"), testing::ElementsAre("\xA9", "y", ""));
}

TEST(TextStreamTest, SpacesDependOnTheTokensBefore) {
  TextStream stream(decode_words, Tokens{1, 2, 3, 4, 5, 6, 7, 8});
  std::string text;
  for (int32_t token = 9; token < 40; ++token) text += stream.push(token);
  EXPECT_TRUE(text.starts_with(" w9 w10 w11"));
  EXPECT_TRUE(text.ends_with(" w38 w39"));
  TextStream fresh(decode_words, {});
  EXPECT_EQ(fresh.push(1), "w1");
  EXPECT_EQ(fresh.push(2), " w2");
}

TEST(TextStreamTest, TheWindowStaysSmall) {
  size_t largest = 0;
  TextStream stream(
      [&](std::span<const int32_t> ids) {
        largest = std::max(largest, ids.size());
        return decode_bytes(ids);
      },
      Tokens(1000, 'p'));
  for (int i = 0; i < 1000; ++i) stream.push('a');
  EXPECT_LE(largest, 6u);
}

struct Stopped {
  std::string text;
  bool found;
};

// Feeds `text` in pieces of `size` bytes.
Stopped run_matcher(const std::vector<std::string>& stops, std::string_view text, size_t size) {
  StopMatcher matcher(stops);
  std::string shown;
  for (size_t i = 0; i < text.size(); i += size) shown += matcher.push(text.substr(i, size));
  shown += matcher.finish();
  return {shown, matcher.found()};
}

TEST(StopMatcherTest, CutsTheSameHoweverTheTextArrives) {
  for (size_t size = 1; size <= 12; ++size) {
    SCOPED_TRACE(size);
    EXPECT_EQ(run_matcher({"END"}, "one EN two END three", size).text, "one EN two ");
    EXPECT_EQ(run_matcher({"aab"}, "xaaab", size).text, "xa");
    EXPECT_EQ(run_matcher({"abc", "b"}, "xabc", size).text, "xa");
    EXPECT_EQ(run_matcher({"c", "abc"}, "xabc", size).text, "x");
    EXPECT_EQ(run_matcher({"abc", "c"}, "xabc", size).text, "x");
    EXPECT_EQ(run_matcher({"\n\n"}, "a\nb\n\nc", size).text, "a\nb");
    EXPECT_TRUE(run_matcher({"END"}, "xEND", size).found);
    EXPECT_FALSE(run_matcher({"END"}, "xEN", size).found);
    EXPECT_EQ(run_matcher({"END"}, "xEN", size).text, "xEN");
    EXPECT_EQ(run_matcher({}, "anything", size).text, "anything");
  }
}

TEST(StopMatcherTest, HoldsBackOnlyWhatMayBecomeAStop) {
  StopMatcher matcher({"</s>", "STOP"});
  EXPECT_EQ(matcher.push("a<"), "a");
  EXPECT_EQ(matcher.push("/"), "");
  EXPECT_EQ(matcher.push("b ST"), "</b ");
  EXPECT_EQ(matcher.push("OP more"), "");
  EXPECT_TRUE(matcher.found());
  EXPECT_EQ(matcher.push("after"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcherTest, AnEmptyStopIsAnError) { EXPECT_THROW(StopMatcher({"a", ""}), Error); }

}  // namespace text_stream_test
}  // namespace headshare
