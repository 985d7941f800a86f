#include "headshare/tasks/finetune/squad_task.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/optim/adam.h>

#include <set>

#include "headshare/base/testing.h"
#include "headshare/models/testing.h"
#include "headshare/tasks/testing.h"

namespace headshare {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr uint64_t kSeed = 4;

// Makes questions about texts; an answer stands in its text where it first occurs, or is none.
SquadData made(const std::vector<std::pair<std::string, std::string>>& texts, SquadRules rules = SquadRules::kV1) {
  SquadData data{.source = "made.json", .rules = rules};
  for (const auto& [text, answer] : texts) {
    const size_t number = data.questions.size();
    data.paragraphs.push_back({.title = join_text("article ", number / 2), .context = text});
    SquadQuestion question{.id = join_text("q", number), .question = "the fox", .paragraph = number};
    if (!answer.empty()) {
      const size_t at = text.find(answer);
      question.answers.push_back({.text = answer, .located = at != std::string::npos});
      if (at != std::string::npos) question.answers.back().bytes = {at, at + answer.size()};
    }
    data.questions.push_back(std::move(question));
  }
  return data;
}

class SquadTaskTest : public testing::Test {
 protected:
  std::shared_ptr<Tokenizer> tokenizer_ = small_wordpiece();
  RowEncoder rows_{*tokenizer_, 12};
};

TEST_F(SquadTaskTest, WindowsOverlapAndHoldTheAnswer) {
  // The paragraph has twelve tokens, of which seven fit beside the question's two.
  const SquadSet set = make_windows(made({{"a a a a a a dogs a a a a a", "dogs"}}), rows_, {.stride = 3}, true);
  ASSERT_EQ(set.windows.size(), 3U);
  EXPECT_THAT(set.windows[0].row.ids, ElementsAre(2, 8, 6, 3, 5, 5, 5, 5, 5, 5, 7, 3));
  EXPECT_EQ(set.windows[0].start, 10);
  EXPECT_EQ(set.windows[0].end, 10);
  EXPECT_EQ(set.windows[1].start, 7);
  EXPECT_EQ(set.windows[2].first, 6);
  EXPECT_EQ(set.windows[2].start, 4);
  EXPECT_EQ(set.windows[2].tokens(), 6);
  const SquadSet far = make_windows(made({{"a a a a a a dogs a a a a a", "dogs"}}), rows_, {.stride = 100}, true);
  EXPECT_EQ(far.windows.size(), 2U) << "no stride skips text";
  EXPECT_EQ(far.windows[1].start, 0) << "the answer is in the first window only";
}

TEST_F(SquadTaskTest, AnswersComeBackAsTheyStandInTheText) {
  const std::string text = "The  foxes, dogs a";
  const SquadSet set = make_windows(made({{text, "foxes, dogs"}}), rows_, {}, true);
  const SquadWindow& window = set.windows.front();
  std::vector<float> start(12, 0);
  std::vector<float> end(12, 0);
  start[static_cast<size_t>(window.start)] = 5;
  end[static_cast<size_t>(window.end)] = 4;
  std::vector<AnswerCandidate> found;
  add_candidates(set, window, {start.data(), end.data()}, {}, &found);
  const auto best =
      std::max_element(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.score < b.score; });
  EXPECT_EQ(best->text, "foxes, dogs");
  EXPECT_EQ(best->score, 9);
  found.clear();
  add_candidates(set, window, {start.data(), end.data()}, {.best = 20, .answer_length = 1}, &found);
  for (const AnswerCandidate& one : found) EXPECT_EQ(one.text.find(' '), std::string::npos) << one.text;
}

TEST_F(SquadTaskTest, QuestionsWithoutAPlaceAreNotTaughtButJudged) {
  const SquadData data = made({{"a dogs a", "fox"}, {"a dogs a", "dogs"}});
  const SquadSet taught = make_windows(data, rows_, {}, true);
  EXPECT_EQ(taught.windows.size(), 1U);
  EXPECT_THAT(taught.notes, Contains(HasSubstr("1 questions have no answer whose place is known")));
  EXPECT_EQ(make_windows(data, rows_, {}, false).windows.size(), 2U);
  SquadData possible = made({{"a dogs a", ""}, {"a dogs a", "dogs"}, {"a", ""}}, SquadRules::kV2);
  EXPECT_EQ(make_windows(possible, rows_, {}, true).windows.size(), 3U);
  possible.questions[0].answerable = true;  // its answer is not given
  EXPECT_EQ(make_windows(possible, rows_, {}, true).windows.size(), 2U);
  EXPECT_THAT(error_message([&] {
                make_windows(made({{"a", "fox"}}), rows_, {}, true);
              }),
              StartsWith("made.json: no question can be trained on"));
  SquadData elsewhere = made({{"a", "fox"}});
  elsewhere.answers = elsewhere.misplaced = 1;
  elsewhere.first_misplaced = "the first: question q0";
  EXPECT_THAT(error_message([&] { make_windows(elsewhere, rows_, {}, true); }),
              StartsWith("made.json: 1 of 1 answers do not stand at their answer_start (the first: question q0): no "
                         "question can be trained on; answer_start counts"));
  EXPECT_THAT(error_message([&] { make_windows(data, rows_, {.question_length = 9}, true); }),
              HasSubstr("no room for a question of 9"));
}

TEST_F(SquadTaskTest, ArticlesAreHeldBackWhole) {
  SquadData data = made({{"a", "a"}, {"a", "a"}, {"a", "a"}, {"a", "a"}, {"a", "a"}, {"a", "a"}});
  const SquadData held = split_off_articles(0.3, &data);
  EXPECT_EQ(held.questions.size(), 2U);
  EXPECT_EQ(data.questions.size(), 4U);
  std::set<std::string> titles;
  for (const SquadQuestion& question : held.questions) titles.insert(held.paragraphs[question.paragraph].title);
  EXPECT_EQ(titles.size(), 1U);
  for (const SquadQuestion& question : data.questions) {
    EXPECT_FALSE(titles.contains(data.paragraphs[question.paragraph].title));
  }
  SquadData one = made({{"a", "a"}});
  EXPECT_THAT(error_message([&] { split_off_articles(0.5, &one); }), HasSubstr("has 1 article with questions"));
  keep_some(3, &data);
  EXPECT_EQ(data.questions.size(), 3U);
}

SquadTrainingData training_data(const std::shared_ptr<Tokenizer>& tokenizer, SquadRules rules) {
  RowEncoder rows(*tokenizer, 12);
  std::vector<std::pair<std::string, std::string>> texts = {
      {"a a dogs a", "dogs"}, {"dogs a a", "dogs"}, {"a dogs", "dogs"}, {"a a a dogs a", "dogs"}};
  if (rules == SquadRules::kV2) {
    texts.insert(texts.end(), {{"a a a", ""}, {"a a a a a", ""}, {"a a", ""}});
  }
  return {.train = make_windows(made(texts, rules), rows, {}, true),
          .validation = make_windows(made(texts, rules), rows, {}, false),
          .padding = 0,
          .tokenizer = tokenizer};
}

Encoder beginning(const std::string& scheme = "mqa") {
  EncoderOptions options = small_encoder_options(scheme);
  options.vocabulary = 11;
  options.context = 16;
  options.init_deviation = 0.2;
  const Encoder trained = small_encoder(options);
  return starting_model(trained->options(), model_tensors(*trained), {.kind = TaskHeadKind::kToken, .outputs = 2}, {},
                        kSeed);
}

SquadTask small_task(const SquadTrainingData& data, FineTuneOptions tuning = {.batch_size = 4}) {
  return {data, tuning, {}, beginning(), kSeed, at::kCPU};
}

TEST_F(SquadTaskTest, LearnsToFindAnswers) {
  for (const SquadRules rules : {SquadRules::kV1, SquadRules::kV2}) {
    const SquadTrainingData data = training_data(tokenizer_, rules);
    SquadTask task = small_task(data);
    const double before = task.evaluate(Part::kValidation, {}).loss;
    torch::optim::Adam adam(task.model()->parameters(), torch::optim::AdamOptions(0.01));
    task.model()->train();
    for (int step = 0; step < 80; ++step) {
      const auto targets = static_cast<double>(task.draw(1));
      adam.zero_grad();
      (task.loss_sum(0) / targets).backward();
      adam.step();
    }
    const Evaluation after = task.evaluate(Part::kValidation, {});
    EXPECT_EQ(*after.goal, 100);
    EXPECT_LT(after.loss, before);
    EXPECT_EQ(after.blocks.empty(), rules == SquadRules::kV2);
    // Without an answer the score of "no answer" is the larger one.
    const SquadAnswers answers = task.answers(data.validation, {});
    for (size_t i = 0; i < answers.null_odds.size(); ++i) EXPECT_EQ(answers.null_odds[i] > 0, i >= 4) << i;
  }
}

TEST_F(SquadTaskTest, ATeacherHasItsShareOfTheLoss) {
  SquadTrainingData data = training_data(tokenizer_, SquadRules::kV1);
  data.teacher = {.model = beginning("mha"), .how = {.scores = {.share = 0.25, .temperature = 2}, .hidden = 0.5}};
  data.teacher.model->eval();
  const auto windows = static_cast<int64_t>(data.train.windows.size());
  SquadTask task = small_task(data, {.batch_size = windows});  // an epoch: every window once
  task.model()->eval();
  task.draw(1);
  const at::NoGradGuard no_grad;
  Encoder model = beginning();
  model->eval();
  double plain = 0, apart = 0, states_apart = 0, size = 0;
  for (const SquadWindow& window : data.train.windows) {
    const SquadAnswerer own{model, 0, 1, {}}, teacher{data.teacher.model, 0, 1, {}};
    const Tensor wanted = read_windows(teacher, {&window}, /*states=*/true).states;
    states_apart += (read_windows(own, {&window}, /*states=*/true).states - wanted).square().sum().item<double>();
    size += wanted.square().sum().item<double>();
    const Tensor scores = place_scores(own, {&window})[0], theirs = place_scores(teacher, {&window})[0];  // [S, 2]
    const Tensor shares = at::softmax(theirs / 2, 0), logs = at::log_softmax(scores, 0);
    plain -= (logs[window.start][0] + logs[window.end][1]).item<double>() / 2;
    const Tensor gaps = at::xlogy(shares, shares) - at::xlogy(shares, at::softmax(scores / 2, 0));
    apart += gaps.sum().item<double>() / 2;
  }
  EXPECT_GT(apart, 1e-4);
  EXPECT_GT(states_apart, 0.01 * size);
  const double hidden = 0.5 * states_apart / size * static_cast<double>(windows);
  EXPECT_NEAR(task.loss_sum(0).item<double>(), 0.75 * plain + 0.25 * 4 * apart + hidden, 1e-4);
  EXPECT_NEAR(*task.plain_loss_sum(), plain, 1e-4);
}

// There are windows of two lengths, all of one length alike: a batch of one length has one of two losses.
TEST_F(SquadTaskTest, BatchesAreOfOneLengthWhereAsked) {
  constexpr int64_t kBatch = 4, kBatches = 8;
  std::vector<std::pair<std::string, std::string>> texts(kBatch * kBatches / 2, {"dogs a", "dogs"});
  texts.resize(kBatch * kBatches, {"a a a a dogs", "dogs"});
  const SquadTrainingData data = {.train = make_windows(made(texts), rows_, {}, true),
                                  .validation = make_windows(made(texts), rows_, {}, false),
                                  .padding = 0,
                                  .tokenizer = tokenizer_};
  const auto losses = [&](bool group_by_length) {
    SquadTask task = small_task(data, {.batch_size = kBatch, .group_by_length = group_by_length});
    task.model()->eval();
    std::set<int64_t> seen;
    for (int64_t i = 0; i < kBatches; ++i) {
      task.draw(1);
      seen.insert(std::llround(1e3 * task.loss_sum(0).item<double>()));
    }
    return seen;
  };
  EXPECT_EQ(losses(true).size(), 2U);
  EXPECT_GT(losses(false).size(), 2U);
}

// Padding must not be chosen as an answer's place, whatever its hidden state is.
TEST_F(SquadTaskTest, PaddingChangesNoLoss) {
  const SquadTrainingData data = training_data(tokenizer_, SquadRules::kV1);
  SquadTask task = small_task(data);
  const double together = task.evaluate(Part::kValidation, {}).loss;
  double alone = 0;
  for (size_t i = 0; i < data.validation.windows.size(); ++i) {
    SquadTrainingData one = data;
    one.validation.windows = {data.validation.windows[i]};
    SquadTask single = small_task(one);
    alone += single.evaluate(Part::kValidation, {}).loss;
  }
  EXPECT_NEAR(together, alone / static_cast<double>(data.validation.windows.size()), 1e-5);
}

}  // namespace
}  // namespace headshare
