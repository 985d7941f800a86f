#include "headshare/tasks/finetune/questions.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>

#include "headshare/base/files/file.h"
#include "headshare/base/testing.h"
#include "headshare/tasks/finetune/job.h"
#include "headshare/tasks/testing.h"

namespace headshare {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Questions : public testing::Test {
 protected:
  // Reads `text` as a file of the task.
  QuestionSet read(Suite suite, const std::string& task, const std::string& text) {
    const fs::path path = directory_.path() / (suite == Suite::kGlue ? "part.tsv" : "part.jsonl");
    write_file(path, text);
    return read_questions(find_task(suite, task), path.string(), rows_);
  }

  TemporaryDirectory directory_;
  std::shared_ptr<Tokenizer> tokenizer_ = small_wordpiece();
  RowEncoder rows_{*tokenizer_, 24};
};

TEST_F(Questions, ClassesAndNumbers) {
  const QuestionSet set = read(Suite::kGlue, "sst-2", "sentence\tlabel\nthe fox\t1\ndogs\t0\n");
  ASSERT_EQ(set.questions.size(), 2U);
  EXPECT_TRUE(set.labelled);
  EXPECT_EQ(set.questions[0].label, 1);
  EXPECT_THAT(set.questions[0].rows.front().ids, ElementsAre(2, 8, 6, 3));
  EXPECT_THAT(class_counts(set, 2), ElementsAre(1, 1));
  const QuestionKind kind = kind_of(find_task(Suite::kGlue, "sst-2"));
  EXPECT_EQ(kind.outputs(), 2);
  EXPECT_EQ(score_answers(kind, set, {1, 1}).front().value, 0.5);
  const QuestionSet train = read(Suite::kGlue, "sst-2", "sentence\tlabel\nthe\t1\nfox\t1\ndogs\t0\n");
  const QuestionSet other = read(Suite::kGlue, "sst-2", "sentence\tlabel\nthe\t1\nfox\t0\ndogs\t0\na\t0\n");
  EXPECT_EQ(score_most_frequent(kind, train, other)->front().value, 0.25);
  EXPECT_EQ(score_most_frequent(kind, set, other)->front().value, 0.75) << "of equally frequent ones the first";
  EXPECT_EQ(kind_of(find_task(Suite::kGlue, "sts-b")).form, AnswerForm::kNumber);
  EXPECT_EQ(kind_of(find_task(Suite::kGlue, "sts-b")).outputs(), 1);
  EXPECT_EQ(score_most_frequent(kind_of(find_task(Suite::kGlue, "sts-b")), set, set), std::nullopt);
}

TEST_F(Questions, CopaHasARowForEachChoice) {
  const QuestionSet set =
      read(Suite::kSuperGlue, "copa",
           R"({"premise": "a fox", "choice1": "dogs", "choice2": "the", "question": "cause", "label": 1, "idx": 7})"
           "\n");
  const Question& question = set.questions.front();
  ASSERT_EQ(question.rows.size(), 2U);
  EXPECT_EQ(question.index, 7);
  EXPECT_TRUE(question.right(1));
  EXPECT_FALSE(question.right(0));
  const QuestionKind kind = kind_of(find_task(Suite::kSuperGlue, "copa"));
  EXPECT_EQ(kind.form, AnswerForm::kRow);
  EXPECT_EQ(score_answers(kind, set, {1}).front().value, 1);
  EXPECT_EQ(score_most_frequent(kind, set, set)->front().value, 1);
  QuestionSet more = set;
  more.questions.front().rows.push_back({});
  EXPECT_EQ(score_most_frequent(kind, set, more), std::nullopt) << "no row is the most frequent one";
}

TEST_F(Questions, WordsAreMarked) {
  const QuestionSet set =
      read(Suite::kSuperGlue, "wic",
           R"({"word": "fox", "sentence1": "the fox", "sentence2": "a fox", "start1": 4, "end1": 7,)"
           R"( "start2": 2, "end2": 5, "label": true, "idx": 0})"
           "\n");
  EXPECT_EQ(set.questions.front().rows.front().words[0], (TokenRange{2, 3}));
  EXPECT_EQ(set.questions.front().rows.front().words[1], (TokenRange{5, 6}));
  EXPECT_EQ(kind_of(find_task(Suite::kSuperGlue, "wic")).head, TaskHeadKind::kWords);
}

TEST_F(Questions, MultiRcGroupsItsAnswers) {
  const QuestionSet set =
      read(Suite::kSuperGlue, "multirc",
           R"({"idx": 3, "passage": {"text": "the fox", "questions": [{"question": "a", "idx": 5, "answers": [)"
           R"({"text": "dogs", "idx": 8, "label": 1}, {"text": "fox", "idx": 9, "label": 0}]}]}})"
           "\n");
  ASSERT_EQ(set.questions.size(), 2U);
  EXPECT_EQ(set.questions[1].group, 5);
  EXPECT_EQ(set.questions[1].passage, 3);
  EXPECT_EQ(set.questions[1].index, 9);
  const QuestionKind kind = kind_of(find_task(Suite::kSuperGlue, "multirc"));
  EXPECT_EQ(score_answers(kind, set, {1, 1}).back().value, 0) << "one wrong answer spoils the question";
  EXPECT_EQ(score_answers(kind, set, {1, 0}).back().value, 1);
}

TEST_F(Questions, RecordAsksForEachCandidateOnce) {
  const QuestionSet set = read(
      Suite::kSuperGlue, "record",
      R"({"idx": 0, "passage": {"text": "the fox dogs fox", "entities": [{"start": 4, "end": 6}, {"start": 8, "end": 11},)"
      R"( {"start": 13, "end": 15}]}, "qas": [{"query": "a @placeholder", "idx": 4, "answers": [)"
      R"({"start": 8, "end": 11, "text": "dogs"}]}]})"
      "\n");
  const Question& question = set.questions.front();
  EXPECT_THAT(question.choices, ElementsAre("fox", "dogs"));
  EXPECT_THAT(question.rows[1].ids, ElementsAre(2, 8, 6, 7, 6, 3, 5, 7, 3));
  EXPECT_EQ(question.label, 1);
  EXPECT_TRUE(set.labelled);
  const QuestionKind kind = kind_of(find_task(Suite::kSuperGlue, "record"));
  EXPECT_EQ(score_answers(kind, set, {1}).front().value, 1);
  EXPECT_EQ(score_answers(kind, set, {0}).front().value, 0);
}

TEST_F(Questions, CutTextsAreSaid) {
  std::string text = "sentence\tlabel\n";
  for (int i = 0; i < 30; ++i) text += "fox ";
  const QuestionSet set = read(Suite::kGlue, "sst-2", text + "\t1\nfox\t0\n");
  EXPECT_THAT(set.notes, Contains(HasSubstr("1 of 2 rows were longer than 24 tokens")));
}

QuestionSet numbered(int count) {
  QuestionSet set{.source = "made"};
  for (int i = 0; i < count; ++i) set.questions.push_back({.rows = {}, .index = i});
  return set;
}

std::vector<int64_t> indexes(const QuestionSet& set) {
  std::vector<int64_t> all;
  for (const Question& question : set.questions) all.push_back(question.index);
  return all;
}

TEST(QuestionSets, SubsetsAreTheSameEveryTime) {
  QuestionSet first = numbered(100);
  QuestionSet again = numbered(100);
  keep_some(10, &first);
  keep_some(10, &again);
  EXPECT_EQ(first.questions.size(), 10U);
  EXPECT_EQ(indexes(first), indexes(again));
  EXPECT_TRUE(std::is_sorted(first.questions.begin(), first.questions.end(),
                             [](const Question& a, const Question& b) { return a.index < b.index; }));
  EXPECT_NE(indexes(first).front() + 9, indexes(first).back()) << "not the first ten";
  QuestionSet all = numbered(5);
  keep_some(5, &all);
  keep_some({}, &all);
  EXPECT_EQ(all.questions.size(), 5U);
  EXPECT_THAT(all.notes, IsEmpty());
}

TEST(QuestionSets, PartsAreHeldBackWhole) {
  QuestionSet train = numbered(50);
  const QuestionSet held = split_off(0.2, &train);
  EXPECT_EQ(held.questions.size(), 10U);
  std::set<int64_t> all;
  for (const int64_t index : indexes(train)) all.insert(index);
  for (const int64_t index : indexes(held)) all.insert(index);
  EXPECT_EQ(all.size(), 50U);
  QuestionSet two = numbered(2);
  EXPECT_EQ(split_off(0.01, &two).questions.size(), 1U);
  EXPECT_THAT(error_message([&] { split_off(0.5, &two); }), HasSubstr("has 1 example"));
}

// Makes eight answers of two questions on each paragraph.
QuestionSet multirc(int paragraphs) {
  QuestionSet set = numbered(8 * paragraphs);
  for (size_t i = 0; i < set.questions.size(); ++i) {
    set.questions[i].group = static_cast<int64_t>(i / 4);
    set.questions[i].passage = static_cast<int64_t>(i / 8);
  }
  return set;
}

TEST(QuestionSets, AnswersOfAQuestionStayTogether) {
  QuestionSet some = multirc(20);
  keep_some(50, &some);
  std::map<int64_t, int> answers;
  for (const Question& one : some.questions) ++answers[one.group];
  EXPECT_EQ(answers.size(), 12U);
  EXPECT_THAT(answers, testing::Each(testing::Pair(testing::_, 4)));
  EXPECT_THAT(some.notes, ElementsAre("made: 48 of 160 examples are used, questions whole"));
}

TEST(QuestionSets, ParagraphsAreHeldBackWhole) {
  QuestionSet train = multirc(10);
  const QuestionSet held = split_off(0.3, &train);
  EXPECT_EQ(held.questions.size(), 24U);
  for (const Question& one : held.questions) {
    for (const Question& other : train.questions) EXPECT_NE(one.passage, other.passage);
  }
  QuestionSet lone = multirc(1);
  for (Question& one : lone.questions) one.passage = 3;
  EXPECT_THAT(error_message([&] { split_off(0.5, &lone); }), HasSubstr("has 1 paragraph"));
}

TEST(JobNames, AreFoundHoweverTheyAreWritten) {
  EXPECT_THAT(expand_job_names({"cola", "SST2", "squad"}), ElementsAre("glue/cola", "glue/sst-2", "squad"));
  EXPECT_THAT(expand_job_names({"superglue/rte"}), ElementsAre("superglue/rte"));
  EXPECT_EQ(expand_job_names({"glue", "cola"}).size(), 9U);
  EXPECT_EQ(expand_job_names({"superglue"}).size(), 8U);
  EXPECT_THAT(error_message([] { expand_job_names({"rte"}); }), HasSubstr("write glue/rte or superglue/rte"));
  EXPECT_THAT(error_message([] { expand_job_names({"glue/ax"}); }), HasSubstr("scored together with glue/mnli"));
  EXPECT_THAT(error_message([] { expand_job_names({"clasify"}); }), HasSubstr("did you mean 'classify'"));
}

}  // namespace
}  // namespace headshare
