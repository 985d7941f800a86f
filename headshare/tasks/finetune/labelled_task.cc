#include "headshare/tasks/finetune/labelled_task.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "headshare/base/error.h"
#include "headshare/base/rng.h"

namespace headshare {
namespace {

// A training step reads so many rows of a question that has more: a right one and others.
constexpr size_t kMostTrainingRows = 8;

// Returns the mean of a task's scores; where one of them is 0/0, the least that any metric can be.
double goal_of(const std::vector<Score>& scores) {
  const double mean = task_score(scores);
  return std::isfinite(mean) ? mean : -1;
}

}  // namespace

LabelledTask::LabelledTask(const LabelledData& data, const FineTuneOptions& options, Encoder model, uint64_t seed,
                           c10::Device device, TrainingShape shape)
    : FineTuneTask(std::move(model), data.tokenizer, data.note, lengths_of(data.train), options, seed, device, shape),
      data_(data),
      options_(options),
      row_key_(stream_key(seed, "rows of examples")) {}

ShownQuestion LabelledTask::draw_rows(const Question& question) const {
  ShownQuestion asked{.question = &question, .rows = {}};
  const size_t rows = question.rows.size();
  if (rows <= kMostTrainingRows || question.label < 0) {
    asked.rows.resize(std::min(rows, kMostTrainingRows));
    std::iota(asked.rows.begin(), asked.rows.end(), size_t{0});
    return asked;
  }
  Philox random(stream_key(row_key_, static_cast<uint64_t>(order_.drawn())));
  asked.rows = {static_cast<size_t>(question.label)};
  while (asked.rows.size() < kMostTrainingRows) {
    const size_t row = random.below(rows);
    if (std::find(asked.rows.begin(), asked.rows.end(), row) == asked.rows.end()) asked.rows.push_back(row);
  }
  return asked;
}

int64_t LabelledTask::draw(int64_t micro_batches) {
  drawn_.assign(static_cast<size_t>(micro_batches), {});
  for (QuestionBatch& batch : drawn_) {
    for (int64_t i = 0; i < options_.batch_size; ++i) {
      const int64_t place = order_.next();
      batch.push_back(draw_rows(data_.train.questions[static_cast<size_t>(place)]));
    }
  }
  return micro_batches * options_.batch_size;
}

Tensor LabelledTask::losses(const QuestionBatch& batch, const Tensor& scores) const {
  if (data_.kind.form == AnswerForm::kRow) {
    std::vector<Tensor> each;
    int64_t first = 0;
    for (const ShownQuestion& asked : batch) {
      const auto count = static_cast<int64_t>(asked.rows.size());
      std::vector<int64_t> right;
      for (int64_t i = 0; i < count; ++i) {
        if (asked.question->right(asked.rows[static_cast<size_t>(i)])) right.push_back(i);
      }
      const Tensor logs = at::log_softmax(scores.narrow(0, first, count).squeeze(1), 0, at::kFloat);
      // A query whose answers are no candidates teaches nothing.
      each.push_back(
          right.empty()
              ? logs.sum() * 0
              : -logs.index_select(0, at::tensor(right, at::kLong).to(logs.device())).logsumexp(at::IntArrayRef({0})));
      first += count;
    }
    return at::stack(each);
  }
  std::vector<double> wanted;
  for (const ShownQuestion& asked : batch) {
    wanted.push_back(data_.kind.form == AnswerForm::kClass ? asked.question->label : asked.question->number);
  }
  const Tensor targets = at::tensor(wanted, at::kDouble).to(scores.device());
  if (data_.kind.form == AnswerForm::kNumber) {
    return (scores.squeeze(1).to(at::kFloat) - targets.to(at::kFloat)).square();
  }
  return at::cross_entropy_loss(scores.to(at::kFloat), targets.to(at::kLong), {}, at::Reduction::None);
}

Tensor LabelledTask::loss_sum(int64_t index) {
  const QuestionBatch& batch = drawn_.at(static_cast<size_t>(index));
  const FineTunedTeacher& teacher = data_.teacher;
  if (!teacher.teaches()) return losses(batch, row_scores(answerer(), batch)).sum();
  const bool states = teacher.how.hidden > 0;
  const RowsRead own = read_rows(answerer(), batch, states);
  const RowsRead theirs = [&] {
    const at::NoGradGuard no_grad;
    return read_rows(asking(teacher.model), batch, states);
  }();
  const Tensor plain = losses(batch, own.scores);
  plain_ = plain.sum().item<double>();
  return taught_sum(plain, divergences_of(batch, own.scores, theirs.scores), own.states, theirs.states, teacher.how);
}

Tensor LabelledTask::divergences_of(const QuestionBatch& batch, const Tensor& scores, const Tensor& teacher) const {
  const double temperature = data_.teacher.how.scores.temperature;
  if (data_.kind.form == AnswerForm::kClass) return divergences(scores, teacher, temperature);
  if (data_.kind.form == AnswerForm::kNumber) {
    // No temperature divides numbers, so the factor of taught_sum() is taken out again.
    return (scores.to(at::kFloat) - teacher.to(at::kFloat)).squeeze(1).square() / (temperature * temperature);
  }
  std::vector<Tensor> each;
  int64_t first = 0;
  for (const ShownQuestion& asked : batch) {
    const auto count = static_cast<int64_t>(asked.rows.size());
    const auto rows = [&](const Tensor& all) { return all.narrow(0, first, count).t(); };  // [1, rows]
    each.push_back(divergences(rows(scores), rows(teacher), temperature));
    first += count;
  }
  return at::cat(each);
}

Answers LabelledTask::answers(const QuestionSet& set, const Task::Progress& progress) {
  return ask_all(answerer(), set, progress, {});
}

void LabelledTask::add_scores(const QuestionSet& set, const Answers& answers, Evaluation* result) const {
  result->scores = score_answers(data_.kind, set, answers);
  result->goal = goal_of(result->scores);
  if (data_.kind.form == AnswerForm::kNumber) return;
  for (size_t i = 0; i < answers.size(); ++i) {
    const Question& question = set.questions[i];
    const bool is_right = data_.kind.form == AnswerForm::kRow ? question.right(static_cast<size_t>(answers[i]))
                                                              : answers[i] == question.label;
    result->blocks.push_back(is_right ? 1 : 0);
  }
}

Evaluation LabelledTask::evaluate(Part part, const Task::Progress& progress) {
  HS_CHECK(has(part), data_.kind.title, " has no labelled test part");
  return evaluate(model_, progress);
}

std::optional<Evaluation> LabelledTask::evaluate_teacher(const Task::Progress& progress) {
  if (data_.teacher.model.is_empty()) return std::nullopt;
  return data_.teacher.evaluated([&] { return evaluate(data_.teacher.model, progress); });
}

Evaluation LabelledTask::evaluate(const Encoder& model, const Task::Progress& progress) const {
  const QuestionSet& set = data_.validation;
  Evaluation result{.targets = static_cast<int64_t>(set.questions.size())};
  double sum = 0;
  const auto add_losses = [&](const QuestionBatch& batch, std::span<const size_t>, const Tensor& scores) {
    sum += losses(batch, scores).sum(at::kDouble).item<double>();
  };
  const Answers all = ask_all(asking(model), set, progress, add_losses);
  result.loss = sum / static_cast<double>(result.targets);
  add_scores(set, all, &result);
  return result;
}

}  // namespace headshare
