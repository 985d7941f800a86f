#include "headshare/decode/beam/line_queue.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Makes a queue whose "translation" of a line is the line in brackets; a token is a byte that is not a space.
class LineQueueTest : public testing::Test {
 protected:
  LineQueue queue(const LineQueueOptions& options, int64_t n_best = 1, size_t given = 1) {
    return LineQueue(options, n_best,
                     {.encode =
                          [](const std::string& line) {
                            std::vector<int32_t> tokens;
                            for (const char c : line) {
                              if (c != ' ') tokens.push_back(static_cast<uint8_t>(c));
                            }
                            return tokens;
                          },
                      .translate = [this, given](std::span<const QueuedLine> batch) { return bracket(batch, given); },
                      .write = [this](const std::string& line) { written_.push_back(line); },
                      .warn = [this](int64_t number,
                                     const std::string& what) { warnings_.push_back(join_text(number, ": ", what)); }});
  }

  std::vector<std::vector<std::string>> bracket(std::span<const QueuedLine> batch, size_t given) {
    std::vector<std::vector<std::string>> outputs;
    batches_.emplace_back();
    for (const QueuedLine& line : batch) {
      const std::string text(line.tokens.begin(), line.tokens.end());
      batches_.back().push_back(text);
      outputs.emplace_back();
      for (size_t i = 0; i < given; ++i) outputs.back().push_back(join_text("[", text, "]", i == 0 ? "" : "'"));
    }
    return outputs;
  }

  std::vector<std::vector<std::string>> batches_ = {};
  std::vector<std::string> written_ = {};
  std::vector<std::string> warnings_ = {};
};

TEST_F(LineQueueTest, AFlushTranslatesWhatWaits) {
  LineQueue lines = queue({});
  lines.push("a");
  EXPECT_THAT(written_, IsEmpty());
  lines.flush();
  EXPECT_THAT(written_, ElementsAre("[a]"));
  lines.push("b");
  lines.push("c");
  lines.flush();
  lines.flush();
  EXPECT_THAT(written_, ElementsAre("[a]", "[b]", "[c]"));
  EXPECT_EQ(batches_.size(), 2u);
  EXPECT_EQ(lines.lines(), 3);
}

TEST_F(LineQueueTest, AFullWindowIsSortedAndCut) {
  LineQueue lines = queue({.batch_size = 3, .batch_tokens = 8, .window = 6});
  for (const char* line : {"a", "bbbb", "cc", "dddd", "ee"}) lines.push(line);
  EXPECT_THAT(written_, IsEmpty());
  lines.push("f");
  EXPECT_THAT(batches_, ElementsAre(ElementsAre("bbbb", "dddd"), ElementsAre("cc", "ee", "a"), ElementsAre("f")));
  EXPECT_THAT(written_, ElementsAre("[a]", "[bbbb]", "[cc]", "[dddd]", "[ee]", "[f]"));
}

TEST_F(LineQueueTest, ALineAboveTheTokensIsABatchByItself) {
  LineQueue lines = queue({.batch_tokens = 3});
  for (const char* line : {"aaaaa", "b", "cccc"}) lines.push(line);
  lines.flush();
  EXPECT_THAT(batches_, ElementsAre(ElementsAre("aaaaa"), ElementsAre("cccc"), ElementsAre("b")));
}

TEST_F(LineQueueTest, LinesAreWrittenAsSoonAsTheEarlierOnesAre) {
  std::vector<size_t> before;  // lines written before each batch
  LineQueue lines({.batch_size = 1}, 1,
                  {.encode = [](const std::string& line) { return std::vector<int32_t>(line.size(), 1); },
                   .translate =
                       [&](std::span<const QueuedLine> batch) {
                         before.push_back(written_.size());
                         return std::vector<std::vector<std::string>>{{std::to_string(batch[0].number)}};
                       },
                   .write = [&](const std::string& line) { written_.push_back(line); },
                   .warn = {}});
  for (const char* line : {"aaa", "b", "cc"}) lines.push(line);
  lines.flush();
  EXPECT_THAT(before, ElementsAre(0, 1, 1));
  EXPECT_THAT(written_, ElementsAre("1", "2", "3"));
}

TEST_F(LineQueueTest, EmptyLinesStayEmptyAndInPlace) {
  LineQueue lines = queue({}, 2, 2);
  lines.push("");
  EXPECT_THAT(written_, ElementsAre("", ""));  // nothing waits before it
  lines.push("a");
  lines.push("  ");
  EXPECT_EQ(written_.size(), 2u);
  lines.flush();
  EXPECT_THAT(written_, ElementsAre("", "", "[a]", "[a]'", "", ""));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("1: empty"), HasSubstr("3: empty")));
}

TEST_F(LineQueueTest, MissingTranslationsBecomeEmptyLines) {
  LineQueue lines = queue({}, 3, 2);
  lines.push("a");
  lines.flush();
  EXPECT_THAT(written_, ElementsAre("[a]", "[a]'", ""));
}

TEST_F(LineQueueTest, AnOutputIsOneLine) {
  LineQueue lines = queue({});
  lines.push("a\nb\rc");
  lines.flush();
  EXPECT_THAT(written_, ElementsAre("[a b c]"));
}

TEST_F(LineQueueTest, BadLinesAreRepaired) {
  LineQueue lines = queue({.max_source = 4});
  lines.push("ok");
  lines.push("a\xFF");
  lines.push("abcdef");
  lines.flush();
  EXPECT_THAT(written_, ElementsAre("[ok]", "[a\xEF\xBF\xBD]", "[abcd]"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("2: not UTF-8 at byte 1"),
                                     HasSubstr("3: 6 tokens long, and at most 4 are allowed")));
}

TEST_F(LineQueueTest, BadLinesAreLeftEmpty) {
  LineQueue lines = queue({.max_source = 4, .bad_lines = BadLines::kEmpty});
  for (const char* line : {"a\xFF", "ok", "abcdef"}) lines.push(line);
  lines.flush();
  EXPECT_THAT(written_, ElementsAre("", "[ok]", ""));
  EXPECT_EQ(warnings_.size(), 2u);
}

TEST_F(LineQueueTest, BadLinesAreRefused) {
  LineQueue lines = queue({.max_source = 4, .bad_lines = BadLines::kRefuse});
  lines.push("ok");
  EXPECT_THAT(error_message([&] { lines.push("\xFF"); }), HasSubstr("line 2 is not UTF-8 at byte 0"));
  EXPECT_THAT(error_message([&] { lines.push("abcdef"); }), HasSubstr("line 3 is 6 tokens long, and at most 4"));
}

TEST_F(LineQueueTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(error_message([&] { queue({.batch_size = 0}); }), HasSubstr("batch-size must lie in 1..16777216, not 0"));
  EXPECT_THAT(error_message([&] { queue({}, 0); }), HasSubstr("n-best"));
  LineQueue many = queue({}, 1, 2);
  many.push("a");
  EXPECT_THAT(error_message([&] { many.flush(); }), HasSubstr("2 translations, more than n-best 1"));
  LineQueue none({}, 1,
                 {.encode = [](const std::string&) { return std::vector<int32_t>{1}; },
                  .translate = [](std::span<const QueuedLine>) { return std::vector<std::vector<std::string>>(); },
                  .write = [](const std::string&) {},
                  .warn = {}});
  none.push("a");
  EXPECT_THAT(error_message([&] { none.flush(); }), HasSubstr("a batch of 1 lines was given 0 translations"));
}

TEST_F(LineQueueTest, OptionsHaveFields) {
  LineQueueOptions options;
  Fields list = fields(options);
  for (const Field& one : list) one.parse(field_text(one.value(), one.name));
  set_field(list, "bad-lines", "refuse", "test");
  EXPECT_EQ(options.bad_lines, BadLines::kRefuse);
}

// However lines come and whenever the input pauses, as many lines go out as came, in order, in batches within the
// limits.
TEST_F(LineQueueTest, OrderAndLimitsHoldForAnyInput) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    written_.clear();
    batches_.clear();
    const LineQueueOptions options{.batch_size = 1 + static_cast<int64_t>(random() % 5),
                                   .batch_tokens = 1 + static_cast<int64_t>(random() % 30),
                                   .window = 1 + static_cast<int64_t>(random() % 12)};
    LineQueue lines = queue(options);
    std::vector<std::string> expected;
    for (uint32_t i = random() % 40; i > 0; --i) {
      const std::string line(random() % 9, static_cast<char>('a' + i % 26));
      expected.push_back(line.empty() ? "" : "[" + line + "]");
      lines.push(line);
      if (random() % 10 == 0) {
        lines.flush();
        ASSERT_EQ(written_, expected);
      }
      ASSERT_LT(expected.size() - written_.size(), static_cast<size_t>(options.window));
    }
    lines.flush();
    ASSERT_EQ(written_, expected);
    for (const auto& batch : batches_) {
      ASSERT_LE(static_cast<int64_t>(batch.size()), options.batch_size);
      ASSERT_TRUE(batch.size() == 1 ||
                  static_cast<int64_t>(batch.size() * batch.front().size()) <= options.batch_tokens);
      ASSERT_TRUE(
          std::is_sorted(batch.begin(), batch.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); }));
    }
  }
}

}  // namespace
}  // namespace headshare
