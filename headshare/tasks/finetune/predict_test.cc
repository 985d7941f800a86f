#include "headshare/tasks/finetune/predict.h"

#include <gmock/gmock.h>

#include <numeric>

#include "headshare/data/test_support.h"
#include "headshare/models/testing.h"
#include "headshare/tasks/finetune/jobs.h"
#include "headshare/tasks/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PredictTest : public DirectoryTest {
 protected:
  // Saves a fine-tuned encoder with random weights.
  fs::path model(const TaskNote& note, const TaskHeadOptions& head) {
    EncoderOptions options = small_encoder_options("mha");
    options.vocabulary = 11;
    options.context = 16;
    options.init_deviation = 0.5;
    options.masked_head = false;
    options.pooler = head.kind != TaskHeadKind::kToken;
    options.task_head = head;
    const fs::path directory = directory_ / "model";
    save_model(directory, small_encoder(options), small_wordpiece().get());
    write_task_note(directory, note);
    return directory;
  }

  fs::path classifier() {
    return model({.task = "classify", .max_length = 12, .most_rows = 2},
                 {.kind = TaskHeadKind::kText, .outputs = 3, .labels = {"no", "yes", "may be"}});
  }

  std::string refusal(const fs::path& path) {
    return error_message([&] { Predictor predictor(open_tuned(path, at::kCPU)); });
  }
};

TEST_F(PredictTest, ClassesHaveProbabilities) {
  Predictor predictor(open_tuned(classifier(), at::kCPU));
  const std::string rows = file("rows.tsv", "text\tlabel\na fox\tno\nthe dogs a dogs\tyes\nthe\tmay be\n");
  const QuestionSet set = predictor.read(rows, {});
  const std::vector<Prediction> made = predictor.predict(set, {});
  ASSERT_EQ(made.size(), 3U);
  for (const Prediction& one : made) {
    ASSERT_EQ(one.probabilities.size(), 3U);
    EXPECT_NEAR(std::accumulate(one.probabilities.begin(), one.probabilities.end(), 0.0), 1, 1e-12);
    const auto best = std::max_element(one.probabilities.begin(), one.probabilities.end());
    EXPECT_EQ(best - one.probabilities.begin(), static_cast<int64_t>(one.answer));
  }
  const std::vector<Score> scores = predictor.score(set, made);
  EXPECT_EQ(scores.front().name, "accuracy");
}

TEST_F(PredictTest, LabelsMayBeMissingOrUnread) {
  Predictor predictor(open_tuned(classifier(), at::kCPU));
  const std::string bare = file("bare.tsv", "words\na fox\nthe\n");
  EXPECT_FALSE(predictor.read(bare, {.text = "words"}).labelled);
  const std::string foreign = file("foreign.tsv", "text\tlabel\na fox\tgood\n");
  EXPECT_THAT(error_message([&] { predictor.read(foreign, {}); }), HasSubstr("unknown label 'good'"));
  const QuestionSet unread = predictor.read(foreign, {.score = false});
  EXPECT_FALSE(unread.labelled);
  EXPECT_THAT(unread.notes, IsEmpty());
}

TEST_F(PredictTest, NumbersHaveNone) {
  const TaskNote note{.task = "regress", .max_length = 12, .table = {.pair = "b"}};
  Predictor predictor(open_tuned(model(note, {.kind = TaskHeadKind::kText, .outputs = 1}), at::kCPU));
  const QuestionSet set = predictor.read(file("rows.csv", "text,b\na fox,the\nthe,dogs\n"), {});
  const std::vector<Prediction> made = predictor.predict(set, {});
  EXPECT_THAT(made.at(0).probabilities, IsEmpty());
  EXPECT_EQ(predictor.answer_text(set.questions[0], 0.1), "0.1");
}

TEST_F(PredictTest, ATaskReadsItsOwnFilesAndTables) {
  const TaskHeadOptions head{.kind = TaskHeadKind::kText, .outputs = 2, .labels = {"0", "1"}};
  Predictor predictor(open_tuned(model({.task = "glue/sst-2", .max_length = 12}, head), at::kCPU));
  EXPECT_TRUE(predictor.read(file("dev.tsv", "sentence\tlabel\na fox\t1\n"), {}).labelled);
  EXPECT_EQ(predictor.read(file("own.csv", "review\na fox\n"), {.text = "review"}).questions.size(), 1U);
  EXPECT_THAT(error_message([&] { predictor.read("own.csv", {.label = "x"}); }), HasSubstr("need --text-column"));
}

// A model of single texts has no answer for pairs, and a model of pairs none for single texts.
TEST_F(PredictTest, AsManyTextsAsInTraining) {
  const std::string rows = file("rows.csv", "text,more\na fox,the\n");
  Predictor single(open_tuned(classifier(), at::kCPU));
  EXPECT_THAT(error_message([&] { single.read(rows, {.pair = "more"}); }),
              HasSubstr("--pair-column names a second text, and the model was fine-tuned on single texts (classify)"));
  const TaskHeadOptions head{.kind = TaskHeadKind::kText, .outputs = 2, .labels = {"0", "1"}};
  Predictor pairs(open_tuned(model({.task = "glue/mrpc", .max_length = 12}, head), at::kCPU));
  EXPECT_THAT(error_message([&] { pairs.read(rows, {.text = "text"}); }), HasSubstr("--pair-column"));
  EXPECT_EQ(pairs.read(rows, {.text = "text", .pair = "more"}).questions.size(), 1U);
}

TEST_F(PredictTest, RowsOfOneIndexAreRefused) {
  Predictor predictor(open_tuned(classifier(), at::kCPU));
  EXPECT_THAT(error_message([&] { predictor.read(file("rows.tsv", "index\ttext\n4\ta\n7\tthe\n4\tfox\n"), {}); }),
              testing::AllOf(HasSubstr("rows.tsv: two rows have the index 4"), HasSubstr("number the rows")));
  EXPECT_EQ(predictor.read(file("rows.tsv", "index\ttext\n4\ta\n7\tthe\n"), {}).questions.size(), 2U);
}

// A job answers these rows at the end of a fine-tuning, too.
TEST_F(PredictTest, AJobRefusesRowsOfOneIndex) {
  const LoadedEncoder encoder = load_encoder_model(classifier());
  const std::string train = file("train.tsv", "index\ttext\tlabel\n1\ta\tno\n1\tthe\tyes\n");
  const std::string once = file("once.tsv", "index\ttext\tlabel\n1\ta\tno\n2\tthe\tyes\n");
  const std::string twice = file("twice.tsv", "index\ttext\tlabel\n7\ta\tno\n7\tthe\tyes\n");
  const auto refusal = [&](const TaskFiles& files) {
    return error_message([&] { open_table_job("classify", {.files = files}, encoder); });
  };
  EXPECT_EQ(refusal({.train = train, .validation = once}), "no error");
  EXPECT_THAT(refusal({.train = train, .validation = twice}), HasSubstr("twice.tsv: two rows have the index 7"));
  EXPECT_THAT(refusal({.train = train, .validation = once, .test = twice}), HasSubstr("two rows have the index 7"));
}

TEST_F(PredictTest, QuestionsAboutTextsHaveAnswersInThem) {
  const fs::path path = model({.task = kSquadTask, .max_length = 16, .most_rows = 2, .windows = {.stride = 2}},
                              {.kind = TaskHeadKind::kToken, .outputs = 2});
  EXPECT_EQ(open_tuned(path, at::kCPU).note.windows.stride, 2);
  SquadPredictor predictor(open_tuned(path, at::kCPU));
  const std::string rows = file("squad.json", R"({"version": "1.1", "data": [{"title": "t", "paragraphs": [
      {"context": "the dogs a a fox a the", "qas": [{"id": "q", "question": "the fox", "answers": []}]}]}]})");
  const SquadSet set = predictor.read(rows);
  EXPECT_FALSE(can_be_scored(set.data));
  const SquadAnswers answers = predictor.predict(set, {});
  ASSERT_EQ(answers.candidates.size(), 1U);
  EXPECT_THAT("the dogs a a fox a the", HasSubstr(answers.candidates[0].at(0).text));
}

TEST_F(PredictTest, RefusesWhatIsNotFineTunedOrDoesNotBelongTogether) {
  const TaskHeadOptions two{.kind = TaskHeadKind::kText, .outputs = 2, .labels = {"no", "yes"}};
  EXPECT_THAT(refusal(model({.task = "glue/sst-2", .max_length = 12}, two)), HasSubstr("do not belong together"));
  EXPECT_THAT(refusal(model({.task = "classify", .max_length = 400}, two)), HasSubstr("rows of 400 tokens"));
  const fs::path squad = model({.task = kSquadTask, .max_length = 12}, two);
  EXPECT_THAT(error_message([&] { SquadPredictor predictor(open_tuned(squad, at::kCPU)); }),
              HasSubstr("do not belong together"));
  const fs::path old = classifier();
  fs::remove(old / kTaskNoteFile);
  EXPECT_THAT(refusal(old), HasSubstr("has no task.json"));
  EXPECT_THAT(refusal(directory_ / "none"), HasSubstr("none: it does not exist"));
}

TEST_F(PredictTest, AFineTuningStandsForItsOnlyModel) {
  const fs::path out = directory_ / "out";
  const auto keep = [&](const std::string& run) {
    make_directories(out / "classify" / run / "checkpoints" / "best");
    write_file(out / "classify" / run / "checkpoints" / "best" / "config.json", "{}");
    return out / "classify" / run;
  };
  make_directories(out / "classify" / "lr-1-seed-0");
  write_file(out / "results.json", "{}");
  EXPECT_THAT(error_message([&] { find_tuned_model(out); }), HasSubstr("kept no model"));
  const fs::path only = keep("lr-1-seed-1");
  EXPECT_EQ(find_tuned_model(out), only);
  EXPECT_EQ(find_tuned_model(only), only);
  keep("lr-1-seed-2");
  EXPECT_THAT(error_message([&] { find_tuned_model(out); }), HasSubstr("holds 2 models; name one of them: "));
}

}  // namespace
}  // namespace headshare
