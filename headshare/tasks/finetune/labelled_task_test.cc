#include "headshare/tasks/finetune/labelled_task.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/optim/adam.h>

#include <cmath>

#include "headshare/base/testing.h"
#include "headshare/models/testing.h"
#include "headshare/tasks/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSeed = 4;

EncoderOptions trained_options(const std::string& scheme = "mha") {
  EncoderOptions options = small_encoder_options(scheme);
  options.vocabulary = 11;
  options.context = 16;
  options.init_deviation = 0.2;
  options.pooler = false;
  return options;
}

// Makes texts: those with a fox are of class 1, those without of class 0; numbers say how many dogs there are.
LabelledData small_data(AnswerForm form) {
  const auto tokenizer = small_wordpiece();
  RowEncoder rows(*tokenizer, 16);
  LabelledData data{.kind = {.name = "made", .title = "made", .form = form}, .padding = 0, .tokenizer = tokenizer};
  if (form == AnswerForm::kClass) data.kind.labels = {"no", "yes"};
  data.kind.metrics = form == AnswerForm::kNumber ? std::vector{Metric::kPearson} : std::vector{Metric::kAccuracy};
  const auto text = [](int i) { return std::string(i % 2 == 0 ? "a the" : "a fox") + (i % 3 == 0 ? " dogs" : " a"); };
  for (QuestionSet* set : {&data.train, &data.validation}) {
    *set = {.source = "made", .labelled = true};
    for (int i = 0; i < 12; ++i) {
      Question question{.rows = {rows.single(text(i))}, .label = i % 2, .number = i % 3 == 0 ? 1.0 : 0.0, .index = i};
      if (form == AnswerForm::kRow) {
        question.rows = {rows.pair("the", text(i)), rows.pair("the", text(i + 1))};
        question.label = 1 - i % 2;  // the row with the fox
      }
      set->questions.push_back(std::move(question));
    }
  }
  return data;
}

Encoder beginning(const LabelledData& data, const std::string& scheme = "mha",
                  TaskHeadKind kind = TaskHeadKind::kText) {
  const Encoder trained = small_encoder(trained_options(scheme));
  return starting_model(trained->options(), model_tensors(*trained),
                        {.kind = kind, .outputs = data.kind.outputs(), .labels = data.kind.labels}, {}, kSeed);
}

LabelledTask small_task(const LabelledData& data, const std::string& scheme = "mha") {
  return {data, {.batch_size = 4}, beginning(data, scheme), kSeed, at::kCPU};
}

double trained_goal(LabelledTask& task, int steps) {
  torch::optim::Adam adam(task.model()->parameters(), torch::optim::AdamOptions(0.01));
  task.model()->train();
  for (int step = 0; step < steps; ++step) {
    const auto targets = static_cast<double>(task.draw(1));
    adam.zero_grad();
    (task.loss_sum(0) / targets).backward();
    adam.step();
  }
  return *task.evaluate(Part::kValidation, {}).goal;
}

TEST(LabelledTask, EverySchemeLearnsToTell) {
  const LabelledData data = small_data(AnswerForm::kClass);
  for (const std::string& scheme : scheme_names()) {
    LabelledTask task = small_task(data, scheme);
    EXPECT_EQ(trained_goal(task, 200), 1) << scheme;
  }
}

TEST(LabelledTask, LearnsNumbersAndChoices) {
  for (const AnswerForm form : {AnswerForm::kNumber, AnswerForm::kRow}) {
    const LabelledData data = small_data(form);
    LabelledTask task = small_task(data);
    EXPECT_GT(trained_goal(task, 80), 0.95);
  }
}

TEST(LabelledTask, LossAndScoresAreWhatTheRowsSay) {
  const LabelledData data = small_data(AnswerForm::kClass);
  LabelledTask task = small_task(data);
  const Evaluation found = task.evaluate(Part::kValidation, {});
  const at::NoGradGuard no_grad;
  Encoder model = beginning(data);
  model->eval();
  double loss = 0;
  double right = 0;
  for (const Question& question : data.validation.questions) {
    const EncoderInput input{.ids = at::tensor(question.rows.front().ids, at::kLong).unsqueeze(0)};
    const Tensor logs = at::log_softmax(model->text_scores(input)[0], 0);
    loss -= logs[question.label].item<double>();
    right += logs.argmax().item<int64_t>() == question.label ? 1 : 0;
  }
  EXPECT_NEAR(found.loss, loss / 12, 1e-5);
  EXPECT_NEAR(*found.goal, right / 12, 1e-12);
  EXPECT_EQ(found.blocks.size(), 12U);
  EXPECT_EQ(found.criterion(), -*found.goal);
}

// Returns the scores of each row of a question, [rows, outputs], read alone.
Tensor scores_of(const Encoder& model, const Question& question) {
  std::vector<Tensor> scores;
  for (const EncodedRow& row : question.rows) {
    const Tensor ids = at::tensor(row.ids, at::kLong).unsqueeze(0);
    const Tensor segments = (at::arange(ids.size(1)) >= row.second).to(at::kLong).unsqueeze(0);
    scores.push_back(model->text_scores({.ids = ids, .segments = segments}));
  }
  return at::cat(scores);
}

// Returns the last hidden states of all tokens of a question, [tokens, E].
Tensor states_of(const Encoder& model, const Question& question) {
  std::vector<Tensor> states;
  for (const EncodedRow& row : question.rows) {
    const Tensor ids = at::tensor(row.ids, at::kLong).unsqueeze(0);
    const Tensor segments = (at::arange(ids.size(1)) >= row.second).to(at::kLong).unsqueeze(0);
    states.push_back(model->hidden({.ids = ids, .segments = segments})[0]);
  }
  return at::cat(states);
}

TEST(LabelledTask, ATeacherHasItsShareOfTheLoss) {
  const DistillationWeights how{.scores = {.share = 0.25, .temperature = 2}, .hidden = 0.5};
  for (const AnswerForm form : {AnswerForm::kClass, AnswerForm::kNumber, AnswerForm::kRow}) {
    LabelledData data = small_data(form);
    data.teacher = {.model = beginning(data, "mqa"), .how = how};
    data.teacher.model->eval();
    LabelledTask task(data, {.batch_size = 12}, beginning(data), kSeed, at::kCPU);  // an epoch: every question once
    task.model()->eval();
    task.draw(1);
    const at::NoGradGuard no_grad;
    Encoder model = beginning(data);
    model->eval();
    double plain = 0, apart = 0, states_apart = 0, size = 0;
    for (const Question& question : data.train.questions) {
      const Tensor states = states_of(data.teacher.model, question);
      states_apart += (states_of(model, question) - states).square().sum().item<double>();
      size += states.square().sum().item<double>();
      const Tensor own = scores_of(model, question).t(), wanted = scores_of(data.teacher.model, question).t();
      if (form == AnswerForm::kNumber) {
        plain += std::pow(own.item<double>() - question.number, 2);
        apart += std::pow(own.item<double>() - wanted.item<double>(), 2) / 4;  // no temperature divides numbers
        continue;
      }
      const Tensor logs = at::log_softmax(own.flatten(), 0), shares = at::softmax(wanted.flatten() / 2, 0);
      plain -= logs[question.label].item<double>();
      apart += (shares * (shares.log() - at::log_softmax(own.flatten() / 2, 0))).sum().item<double>();
    }
    EXPECT_GT(apart, 1e-4);
    EXPECT_GT(states_apart, 0.01 * size);
    const double hidden = 0.5 * states_apart / size * static_cast<double>(data.train.questions.size());
    EXPECT_NEAR(task.loss_sum(0).item<double>(), 0.75 * plain + 0.25 * 4 * apart + hidden, 1e-4);
    EXPECT_NEAR(*task.plain_loss_sum(), plain, 1e-4);
  }
}

TEST(LabelledTask, ConstantNumbersAreTheWorstNotAnError) {
  LabelledData data = small_data(AnswerForm::kNumber);
  for (Question& question : data.validation.questions) question.number = 2;
  LabelledTask task = small_task(data);
  EXPECT_EQ(*task.evaluate(Part::kValidation, {}).goal, -1);
}

TEST(LabelledTask, BatchesFollowFromTheSeedAndGoOnWhereTheyWere) {
  const LabelledData data = small_data(AnswerForm::kClass);
  LabelledTask task = small_task(data);
  LabelledTask other = small_task(data, "mhe_mul");
  task.draw(2);
  other.draw(2);
  EXPECT_EQ(task.state(), other.state());
  const nlohmann::json state = task.state();
  task.draw(1);
  const double loss = task.loss_sum(0).item<double>();
  LabelledTask again = small_task(data);
  again.restore(state, "training.json");
  again.draw(1);
  EXPECT_EQ(again.loss_sum(0).item<double>(), loss);
  EXPECT_THAT(error_message([&] {
                again.restore({{"examples", 5}, {"drawn", 1}}, "training.json");
              }),
              HasSubstr("belongs to 5 training examples; there are 12 now"));
  EXPECT_THAT(error_message([&] { again.restore({{"examples", "x"}}, "training.json"); }), HasSubstr("damaged"));
}

TEST(LabelledTask, AnEpochHasEveryExampleOnce) {
  ExampleOrder order(7, 1);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> seen(7, 0);
    for (int i = 0; i < 7; ++i) ++seen[static_cast<size_t>(order.next())];
    EXPECT_EQ(seen, std::vector<int>(7, 1));
  }
  EXPECT_EQ(order.epochs(), 3);
}

TEST(LabelledTask, BatchesOfOneLengthHaveEveryExampleOnceToo) {
  constexpr int64_t kExamples = 1003, kBatch = 8;
  LengthGroups groups{.batch_size = kBatch};
  for (int64_t i = 0; i < kExamples; ++i) groups.lengths.push_back(5 + i * 7919 % 120);
  ExampleOrder order(kExamples, 1, groups);
  ExampleOrder plain(kExamples, 1);
  const auto padding = [&](ExampleOrder* from) {
    int64_t padded = 0;
    std::vector<int64_t> seen;
    for (int64_t drawn = 0; drawn < 3 * kExamples;) {
      int64_t longest = 0;
      for (int64_t i = 0; i < kBatch && drawn < 3 * kExamples; ++i, ++drawn) {
        seen.push_back(from->next());
        longest = std::max(longest, groups.lengths[static_cast<size_t>(seen.back())]);
      }
      padded += longest * kBatch;
    }
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      const auto first = seen.begin() + epoch * kExamples;
      std::sort(first, first + kExamples);
      for (int64_t i = 0; i < kExamples; ++i) EXPECT_EQ(first[i], i);
    }
    return padded;
  };
  int64_t least = 0;
  for (const int64_t length : groups.lengths) least += 3 * length;
  const int64_t grouped = padding(&order);
  EXPECT_LT(grouped, 1.1 * static_cast<double>(least));
  EXPECT_GT(padding(&plain), 1.5 * static_cast<double>(least));
  // It goes on in the middle of an epoch as if it had never stopped.
  ExampleOrder first(kExamples, 1, groups);
  for (int i = 0; i < 1500; ++i) first.next();
  ExampleOrder second(kExamples, 1, groups);
  second.restore(first.state(), "a checkpoint");
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(second.next(), first.next());
}

TEST(LabelledTask, ManyRowsAreThinnedForTrainingOnly) {
  LabelledData data = small_data(AnswerForm::kRow);
  for (QuestionSet* set : {&data.train, &data.validation}) {
    for (Question& question : set->questions) {
      question.rows = std::vector(20, question.rows.front());
      question.label = 13;
    }
  }
  LabelledTask task = small_task(data);
  task.model()->eval();
  task.draw(1);
  // Equal rows share a softmax equally, those that were drawn and the right one among them.
  EXPECT_NEAR(task.loss_sum(0).item<double>() / 4, std::log(8.0), 1e-4);
  EXPECT_EQ(task.answers(data.validation, {}).size(), 12U);
}

TEST(LabelledTask, StartsFromTheTrainedWeightsWithANewHead) {
  const LabelledData data = small_data(AnswerForm::kClass);
  const Encoder trained = small_encoder(trained_options());
  const Encoder model = beginning(data);
  EXPECT_TRUE(at::equal(model_tensors(*model).at("token_embedding"), model_tensors(*trained).at("token_embedding")));
  EXPECT_FALSE(model_tensors(*model).contains("masked_head.dense.weight"));
  EXPECT_TRUE(model_tensors(*model).contains("pooler.weight"));
  EXPECT_THAT(
      error_message([&] { starting_options(model->options(), {.kind = TaskHeadKind::kText, .outputs = 2}, {}); }),
      HasSubstr("fine-tuned on another task already"));
  EXPECT_TRUE(starting_options(model->options(), model->options().task_head, {}).task_head.outputs > 0);
  const EncoderOptions dropping = starting_options(trained->options(), {.kind = TaskHeadKind::kText, .outputs = 2},
                                                   {.dropout = 0.3, .attention_dropout = 0.2});
  EXPECT_EQ(dropping.dropout, 0.3);
  EXPECT_EQ(dropping.attention.attention_dropout, 0.2);
}

// Rows may be longer than the pre-trained windows: where no table of positions ends, the context grows with them.
TEST(LabelledTask, RotaryEncodersTakeRowsBeyondTheirContext) {
  const FineTuneOptions longer{.max_length = 24};
  EncoderOptions options = trained_options();
  EXPECT_THAT(error_message([&] { longer.row_length(options, 128); }), HasSubstr("encoder's context of 16"));
  EXPECT_EQ(FineTuneOptions{}.row_length(options, 128), 16);
  options.positions = PositionKind::kRotary;
  EXPECT_EQ(longer.row_length(options, 128), 24);
  EXPECT_EQ(FineTuneOptions{}.row_length(options, 128), 16);
  EXPECT_EQ(starting_options(resolve(options), {.kind = TaskHeadKind::kText, .outputs = 2}, longer).context, 24);
}

}  // namespace
}  // namespace headshare
