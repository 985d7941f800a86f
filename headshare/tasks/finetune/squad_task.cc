#include "headshare/tasks/finetune/squad_task.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/metrics/answers.h"

namespace headshare {
SquadTask::SquadTask(const SquadTrainingData& data, const FineTuneOptions& options, const AnswerOptions& answers,
                     Encoder model, uint64_t seed, c10::Device device, TrainingShape shape)
    : FineTuneTask(std::move(model), data.tokenizer, data.note, lengths_of(data.train.windows), options, seed, device,
                   shape),
      data_(data),
      options_(options),
      answers_(answers) {}

int64_t SquadTask::draw(int64_t micro_batches) {
  drawn_.assign(static_cast<size_t>(micro_batches), {});
  for (SquadWindows& windows : drawn_) {
    for (int64_t i = 0; i < options_.batch_size; ++i) {
      windows.push_back(&data_.train.windows[static_cast<size_t>(order_.next())]);
    }
  }
  return micro_batches * options_.batch_size;
}

Tensor SquadTask::losses(const SquadWindows& windows, const Tensor& scores) const {
  std::vector<int64_t> places;
  for (const SquadWindow* window : windows) places.insert(places.end(), {window->start, window->end});
  const Tensor targets = at::tensor(places, at::kLong).view({-1, 2}).to(scores.device());
  // The loss takes the second axis as classes: the places.
  return at::cross_entropy_loss(scores, targets, {}, at::Reduction::None).mean(1);
}

Tensor SquadTask::loss_sum(int64_t index) {
  const SquadWindows& windows = drawn_.at(static_cast<size_t>(index));
  const FineTunedTeacher& teacher = data_.teacher;
  if (!teacher.teaches()) return losses(windows, place_scores(answerer(), windows)).sum();
  const bool states = teacher.how.hidden > 0;
  const RowsRead own = read_windows(answerer(), windows, states);
  const RowsRead theirs = [&] {
    const at::NoGradGuard no_grad;
    return read_windows(asking(teacher.model), windows, states);
  }();
  const Tensor plain = losses(windows, own.scores);
  plain_ = plain.sum().item<double>();
  const Tensor apart = divergences(own.scores, theirs.scores, teacher.how.scores.temperature).mean(1);
  return taught_sum(plain, apart, own.states, theirs.states, teacher.how);
}

SquadAnswers SquadTask::answers(const SquadSet& set, const Task::Progress& progress) {
  return answer_all(answerer(), set, progress, {});
}

Evaluation SquadTask::evaluate(Part part, const Task::Progress& progress) {
  HS_CHECK(has(part), "SQuAD's test part is not public");
  return evaluate(model_, progress);
}

std::optional<Evaluation> SquadTask::evaluate_teacher(const Task::Progress& progress) {
  if (data_.teacher.model.is_empty()) return std::nullopt;
  return data_.teacher.evaluated([&] { return evaluate(data_.teacher.model, progress); });
}

Evaluation SquadTask::evaluate(const Encoder& model, const Task::Progress& progress) const {
  const SquadSet& set = data_.validation;
  Evaluation result{.targets = static_cast<int64_t>(set.data.questions.size())};
  double sum = 0;
  const SquadAnswers answers =
      answer_all(asking(model), set, progress, [&](const SquadWindows& windows, const Tensor& scores) {
        sum += losses(windows, scores).sum(at::kDouble).item<double>();
      });
  result.loss = sum / static_cast<double>(set.windows.size());
  const SquadPredictions predictions = to_predictions(set.data, answers);
  const std::vector<SquadGold> gold = gold_answers(set.data);
  const SquadScores scores = score_squad(gold, predictions, set.data.rules);
  result.scores = to_scores(scores);
  result.goal = squad_goal(scores);
  if (set.data.rules == SquadRules::kV2) return result;
  for (const SquadGold& one : gold) {
    result.blocks.push_back(score_answer(one.answers, predictions.answers.at(one.id), NoWords::kNeverSame).f1);
  }
  return result;
}

}  // namespace headshare
