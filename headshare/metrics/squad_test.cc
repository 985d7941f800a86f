#include "headshare/metrics/squad.h"

#include <gmock/gmock.h>

#include <map>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::vector<SquadGold> kGold = {
    {"q1", {"France", "the France"}}, {"q2", {"10th century", "the 10th and 11th centuries"}}, {"q3", {}}, {"q4", {}}};

std::map<std::string, double> by_name(const SquadScores& scores) {
  std::map<std::string, double> values;
  for (const Score& score : to_scores(scores)) values[score.name] = score.value;
  return values;
}

TEST(SquadTest, PartsOfVersion2) {
  const SquadPredictions predictions{.answers = {{"q1", "France."}, {"q2", "10th"}, {"q3", ""}, {"q4", "Rome"}}};
  const auto values = by_name(score_squad(kGold, predictions, SquadRules::kV2));
  EXPECT_EQ(values, (std::map<std::string, double>{{"exact_match", 50},
                                                   {"f1", 100 * (1 + 2.0 / 3 + 1) / 4},
                                                   {"total", 4},
                                                   {"has_ans_exact", 50},
                                                   {"has_ans_f1", 100 * (1 + 2.0 / 3) / 2},
                                                   {"has_ans_total", 2},
                                                   {"no_ans_exact", 50},
                                                   {"no_ans_f1", 50},
                                                   {"no_ans_total", 2}}));
}

TEST(SquadTest, MissingPredictionsAreWrongAndSaid) {
  const SquadPredictions predictions{.answers = {{"q1", "France"}, {"q9", "x"}, {"q4", ""}}};
  const SquadScores scores = score_squad(kGold, predictions, SquadRules::kV2);
  EXPECT_EQ(scores.all.exact_match, 50);
  EXPECT_EQ(scores.no_ans->exact_match, 50);
  EXPECT_EQ(scores.missing, 2);
  EXPECT_EQ(scores.first_missing, "q2");
  EXPECT_EQ(scores.unknown, 1);
  EXPECT_EQ(to_scores(scores)[0].signature, "exact_match|rules:squad-v2.0|questions:4|missing:2");
}

TEST(SquadTest, NullOddsAboveTheThresholdMeanNoAnswer) {
  SquadPredictions predictions{.answers = {{"q1", "France"}, {"q2", "x"}, {"q3", ""}, {"q4", "Rome"}},
                               .null_odds = NullOdds{{"q1", 0.2}, {"q2", 0.9}, {"q3", 0.1}, {"q4", 0.7}}};
  // The default threshold, 1, changes nothing. The best threshold answers q3 and q1, but not q4 and q2.
  SquadScores scores = score_squad(kGold, predictions, SquadRules::kV2);
  EXPECT_EQ(scores.all.exact_match, 50);
  EXPECT_EQ(scores.best_exact->score, 75);
  EXPECT_EQ(scores.best_exact->threshold, 0.2);
  predictions.null_threshold = 0.2;
  scores = score_squad(kGold, predictions, SquadRules::kV2);
  EXPECT_EQ(scores.all.exact_match, 75);
  EXPECT_EQ(scores.no_ans->exact_match, 100);
  EXPECT_EQ(scores.best_f1->score, 75);
  const std::vector<Score> list = to_scores(scores);
  EXPECT_EQ(list.front().signature, "exact_match|rules:squad-v2.0|null_threshold:0.2|questions:4");
  EXPECT_EQ(list.back().signature, "best_f1_thresh|rules:squad-v2.0|questions:4");
}

TEST(SquadTest, NothingAnsweredIsBestAtThreshold0) {
  const SquadPredictions predictions{.answers = {{"q1", "x"}, {"q2", "x"}, {"q3", "x"}, {"q4", "x"}},
                                     .null_odds = NullOdds{{"q1", 1}, {"q2", 2}, {"q3", 3}, {"q4", 4}}};
  const SquadScores scores = score_squad(kGold, predictions, SquadRules::kV2);
  EXPECT_EQ(scores.best_exact->score, 50);
  EXPECT_EQ(scores.best_exact->threshold, 0);
}

TEST(SquadTest, GoldAnswersOfArticlesAloneMeanNoAnswerUnderVersion2) {
  const std::vector<SquadGold> gold = {{"q1", {"The", "!"}}};
  EXPECT_EQ(score_squad(gold, {.answers = {{"q1", ""}}}, SquadRules::kV2).all.f1, 100);
  EXPECT_EQ(score_squad(gold, {.answers = {{"q1", ""}}}, SquadRules::kV1).all.f1, 0);
  EXPECT_EQ(score_squad(gold, {.answers = {{"q1", ""}}}, SquadRules::kV1).all.exact_match, 100);
  // Beside a real answer, answers without words do not count.
  EXPECT_EQ(score_squad({{"q1", {"The", "cat"}}}, {.answers = {{"q1", ""}}}, SquadRules::kV2).all.f1, 0);
}

TEST(SquadTest, WhatCannotBeScoredIsRefused) {
  EXPECT_THAT(error_message([] { score_squad({}, {}, SquadRules::kV2); }), HasSubstr("no questions"));
  EXPECT_THAT(error_message([] { score_squad(kGold, {}, SquadRules::kV1); }),
              AllOf(HasSubstr("q3"), HasSubstr("rules of v2.0")));
  const SquadPredictions partly{.answers = {{"q1", "France"}}, .null_odds = NullOdds{{"q2", 1}}};
  EXPECT_THAT(error_message([&] { score_squad(kGold, partly, SquadRules::kV2); }), HasSubstr("q1 has a prediction"));
  EXPECT_THAT(error_message([&] { score_squad({kGold[0]}, partly, SquadRules::kV1); }), HasSubstr("leave them out"));
}

}  // namespace
}  // namespace headshare
