#include "headshare/metrics/answers.h"

#include <gmock/gmock.h>

#include "headshare/base/error.h"

namespace headshare {
namespace {

TEST(AnswersTest, Normalisation) {
  EXPECT_EQ(normalize_answer("  The  Eiffel-Tower!\t"), "eiffeltower");
  EXPECT_EQ(normalize_answer("a an the The A theory an."), "theory");
  EXPECT_EQ(normalize_answer("U.S.A."), "usa");
  EXPECT_EQ(normalize_answer("10\u201320 \u00a3"), "10\u201320 \u00a3");  // other punctuation stays
  EXPECT_EQ(normalize_answer("\u2014the\u2014"), "\u2014 \u2014");        // a dash is no word character
  EXPECT_EQ(normalize_answer("the_end a_b"), "theend ab");                // punctuation goes first
  EXPECT_EQ(normalize_answer("x\u00a0y\u2003z\x1cw"), "x y z w");
  EXPECT_EQ(normalize_answer("ΟΔΟΣ İ"), "οδος i\u0307");
  EXPECT_EQ(normalize_answer("a\u0301"), "\u0301");  // a combining accent is no word character: "a" stands alone
  EXPECT_EQ(normalize_answer("The an."), "");
}

TEST(AnswersTest, F1CountsRepeatedWords) {
  const AnswerScore score = score_answer({"the cat sat on the mat mat"}, "mat mat mat dog", NoWords::kNeverSame);
  EXPECT_EQ(score.exact, 0);
  EXPECT_DOUBLE_EQ(score.f1, 2 * (2.0 / 4) * (2.0 / 5) / (2.0 / 4 + 2.0 / 5));
}

TEST(AnswersTest, TheBestGoldAnswerCounts) {
  const AnswerScore score = score_answer({"one two three", "One!", "two"}, "one", NoWords::kNeverSame);
  EXPECT_EQ(score.exact, 1);
  EXPECT_EQ(score.f1, 1);
}

TEST(AnswersTest, NoWordsAtAll) {
  EXPECT_EQ(score_answer({"the"}, "", NoWords::kNeverSame).exact, 1);
  EXPECT_EQ(score_answer({"the"}, "", NoWords::kNeverSame).f1, 0);
  EXPECT_EQ(score_answer({"the"}, "", NoWords::kSameIfBothAre).f1, 1);
  EXPECT_EQ(score_answer({"x"}, "", NoWords::kSameIfBothAre).f1, 0);
}

TEST(AnswersTest, RecordCountsMissingAnswersAsWrong) {
  const std::vector<AnswerPair> questions = {{{"The Union", "EU"}, "union"}, {{"Bob Smith"}, "Bob"}, {{"x"}, {}}};
  const std::vector<Score> scores = record_scores(questions);
  EXPECT_EQ(scores[0].name, "exact_match");
  EXPECT_DOUBLE_EQ(scores[0].value, 1.0 / 3);
  EXPECT_DOUBLE_EQ(scores[1].value, (1 + 2.0 / 3) / 3);
  EXPECT_EQ(scores[1].signature, "f1|rules:record|questions:3|missing:1");
  EXPECT_THROW(record_scores({}), Error);
}

}  // namespace
}  // namespace headshare
