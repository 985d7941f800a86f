#include "headshare/data/benchmarks/predictions.h"

#include <gmock/gmock.h>

#include "headshare/data/test_support.h"
#include "headshare/text/test_support.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class PredictionsTest : public DirectoryTest {
 protected:
  Outcomes join(Suite suite, const std::string& task, const std::string& gold, const std::string& predictions) {
    const TaskInfo& info = find_task(suite, task);
    return read_predictions(info, read_gold_labels(info, file("gold", gold)), file("predicted", predictions));
  }
  std::string refusal(Suite suite, const std::string& task, const std::string& gold, const std::string& predictions) {
    return error_message([&] { join(suite, task, gold, predictions); });
  }
};

const std::string kRte =
    "index\tsentence1\tsentence2\tlabel\n4\ta\tb\tentailment\n7\tc\td\tnot_entailment\n9\te\tf\tentailment\n";
const std::string kStsb = "index\tsentence1\tsentence2\tscore\n0\ta\tb\t1.5\n1\tc\td\t4\n";
const std::string kCb =
    R"({"premise": "a", "hypothesis": "b", "label": "neutral", "idx": 0}
{"premise": "a", "hypothesis": "b", "label": "contradiction", "idx": 1})";
const std::string kMultiRc =
    R"({"idx": 0, "passage": {"text": "P", "questions": [{"question": "Q", "idx": 3, "answers": [{"text": "A", "idx": 5, "label": 1}, {"text": "B", "idx": 6, "label": 0}]}]}})";
const std::string kRecord =
    R"({"idx": 0, "passage": {"text": "Bob Zed", "entities": []}, "qas": [{"query": "@placeholder", "idx": 7, "answers": [{"start": 0, "end": 2, "text": "Bob"}]}, {"query": "@placeholder", "idx": 8, "answers": [{"start": 4, "end": 6, "text": "Zed"}]}]})";

TEST_F(PredictionsTest, GlueSubmissionsGoByIndex) {
  const Outcomes outcomes =
      join(Suite::kGlue, "rte", kRte, "index\tprediction\r\n9\tnot_entailment\r\n4\tentailment\r\n7\tentailment\r\n");
  EXPECT_THAT(outcomes.gold, ElementsAre(0, 1, 0));
  EXPECT_THAT(outcomes.predicted, ElementsAre(0, 0, 1));
}

TEST_F(PredictionsTest, OneLabelALineGoesByOrder) {
  EXPECT_THAT(join(Suite::kGlue, "rte", kRte, "entailment\nentailment\nnot_entailment").predicted,
              ElementsAre(0, 0, 1));
  const Outcomes numbers = join(Suite::kGlue, "sts-b", kStsb, "0.5\n7\n");
  EXPECT_THAT(numbers.gold_numbers, ElementsAre(1.5, 4));
  EXPECT_THAT(numbers.predicted_numbers, ElementsAre(0.5, 7));
}

TEST_F(PredictionsTest, SuperGlueSubmissions) {
  EXPECT_THAT(join(Suite::kSuperGlue, "cb", kCb, R"({"idx": 1, "label": "entailment"}
{"idx": 0, "label": "neutral"})")
                  .predicted,
              ElementsAre(1, 0));
  const Outcomes wsc = join(
      Suite::kSuperGlue, "wsc",
      R"({"text": "a b", "target": {"span1_text": "a", "span1_index": 0, "span2_text": "b", "span2_index": 1}, "label": true, "idx": 0})",
      R"({"idx": 0, "label": "True"})");
  EXPECT_THAT(wsc.predicted, ElementsAre(1));
  const Outcomes multirc = join(
      Suite::kSuperGlue, "multirc", kMultiRc,
      R"({"idx": 0, "passage": {"questions": [{"idx": 3, "answers": [{"idx": 6, "label": 1}, {"idx": 5, "label": 1}]}]}})");
  EXPECT_THAT(multirc.predicted, ElementsAre(1, 1));
  EXPECT_THAT(multirc.groups, ElementsAre(ExampleGroup(0, 3), ExampleGroup(0, 3)));
}

TEST_F(PredictionsTest, RecordKeepsMissingAnswersMissing) {
  const auto pairs = read_record_answers(file("gold", kRecord), file("predicted", R"({"idx": 8, "label": "Zed"})"));
  EXPECT_EQ(pairs[0].predicted, std::nullopt);
  EXPECT_EQ(pairs[1].predicted, "Zed");
  EXPECT_THAT(error_message([&] {
                read_record_answers(file("gold", kRecord), file("predicted", R"({"idx": 9, "label": "Zed"})"));
              }),
              HasSubstr("predicted:1: the query 9 is not in"));
}

TEST_F(PredictionsTest, WhatDoesNotFitIsRefused) {
  const auto glue = [&](const std::string& predictions) { return refusal(Suite::kGlue, "rte", kRte, predictions); };
  EXPECT_THAT(glue("entailment\n"), HasSubstr("predicted has 1 predictions, one a line, for the 3 examples of"));
  EXPECT_THAT(glue(std::string(4, '\n')), HasSubstr("predicted:1: unknown label ''"));
  EXPECT_THAT(glue("entailment\nentail\nentailment\n"),
              AllOf(HasSubstr("predicted:2: unknown label 'entail'"), HasSubstr("known are entailment")));
  EXPECT_THAT(glue("index\tprediction\n4\tentailment\n"),
              AllOf(HasSubstr("2 of 3 examples"), HasSubstr("the first is index 7")));
  EXPECT_THAT(glue("index\tprediction\n5\tentailment\n"), HasSubstr("predicted:2: the index 5 is not in"));
  EXPECT_THAT(glue("index\tprediction\n4\tentailment\n4\tentailment\n"),
              HasSubstr("predicted:3: a second prediction for index 4"));
  EXPECT_THAT(glue("index\tprediction\n4,entailment\n"), HasSubstr("two columns were expected"));
  EXPECT_THAT(glue("index\tprediction\nx\tentailment\n"), HasSubstr("the index must be a whole number, not 'x'"));
  EXPECT_THAT(refusal(Suite::kGlue, "sts-b", kStsb, "0.5\nnan\n"),
              HasSubstr("predicted:2: 'nan' is not a finite number"));
  EXPECT_THAT(refusal(Suite::kSuperGlue, "cb", kCb, R"({"idx": 0})"), HasSubstr("predicted:1: has no 'label'"));
  EXPECT_THAT(refusal(Suite::kSuperGlue, "cb", kCb, R"({"idx": 0, "label")"), HasSubstr("cut short"));
}

TEST_F(PredictionsTest, GoldWithoutLabelsOrWithAnIndexTwiceIsRefused) {
  EXPECT_THAT(refusal(Suite::kGlue, "rte", "index\tsentence1\tsentence2\n0\ta\tb\n", "entailment\n"),
              HasSubstr("has no labels"));
  EXPECT_THAT(
      refusal(
          Suite::kSuperGlue, "multirc",
          R"({"idx": 0, "passage": {"text": "P", "questions": [{"question": "Q", "idx": 3, "answers": [{"text": "A", "idx": 5}]}]}})",
          ""),
      HasSubstr("has no labels"));
  EXPECT_THAT(refusal(Suite::kGlue, "rte", kRte + "4\ta\tb\tentailment\n", ""),
              HasSubstr("the examples 1 and 4 have the same index, 4"));
}

TEST_F(PredictionsTest, MutatedPredictionsAreReadOrRefused) {
  Philox random(stream_key(7, "predictions"));
  int read = 0;
  constexpr int kRounds = 600;
  const auto attempt = [&](Suite suite, const char* task, const std::string& gold, const std::string& predictions) {
    try {
      const Outcomes outcomes = join(suite, task, gold, mutate(predictions, &random));
      EXPECT_EQ(outcomes.predicted.size(), outcomes.gold.size());
      ++read;
    } catch (const Error&) {
    }
  };
  for (int round = 0; round < kRounds; ++round) {
    attempt(Suite::kGlue, "rte", kRte, "index\tprediction\n9\tnot_entailment\n4\tentailment\n7\tentailment\n");
    attempt(Suite::kSuperGlue, "cb", kCb,
            "{\"idx\": 1, \"label\": \"entailment\"}\n{\"idx\": 0, \"label\": \"neutral\"}");
  }
  EXPECT_GT(read, 0);
  EXPECT_LT(read, 2 * kRounds);
}

// The test makes a file for each published one: all right must score 1, whatever the task's metric.
TEST(PredictionsPublishedTest, TheGoldItselfScoresOne) {
  HS_NEEDS_DATA("superglue/WSC/val.jsonl.gz");
  for (const TaskInfo& task : task_list()) {
    const fs::path folder = test_data_folder() / suite_name(task.suite) / task.folder;
    if (!fs::exists(folder / (task.dev + ".gz"))) continue;
    GoldLabels gold = read_gold_labels(task, (folder / (task.dev + ".gz")).string());
    gold.outcomes.predicted = gold.outcomes.gold;
    EXPECT_EQ(task_score(measure(task.metrics, gold.outcomes)), 1) << task.name;
  }
}

}  // namespace
}  // namespace headshare
