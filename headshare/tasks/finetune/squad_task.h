// A SquadTask fine-tunes on questions whose answer is a piece of a text: SQuAD v1.1 and v2.0.
#pragma once

#include <memory>

#include "headshare/tasks/finetune/fine_tune_task.h"
#include "headshare/tasks/finetune/fine_tuned_teacher.h"
#include "headshare/tasks/finetune/squad_answers.h"

namespace headshare {

struct SquadTrainingData {
  SquadSet train;
  SquadSet validation;
  int64_t padding = 0;
  std::shared_ptr<Tokenizer> tokenizer;
  TaskNote note = {};  // what is saved with a model
  FineTunedTeacher teacher = {};
};

class SquadTask : public FineTuneTask {
 public:
  // Takes over the model that starting_model() made, on the CPU; the data must outlive the task.
  SquadTask(const SquadTrainingData& data, const FineTuneOptions& options, const AnswerOptions& answers, Encoder model,
            uint64_t seed, c10::Device device, TrainingShape shape = {});

  int64_t draw(int64_t micro_batches) override;

  // Sums over windows the mean of the cross-entropies of start and end over a window's tokens; a teacher's divergences
  // are formed in the same way.
  Tensor loss_sum(int64_t index) override;
  std::optional<double> plain_loss_sum() const override { return plain_; }

  // Returns the official scores of the validation part in per cent; the goal is squad_goal. Blocks are the F1 of each
  // question (v1.1).
  Evaluation evaluate(Part part, const Task::Progress& progress) override;
  std::optional<Evaluation> evaluate_teacher(const Task::Progress& progress) override;

  SquadAnswers answers(const SquadSet& set, const Task::Progress& progress);

 private:
  SquadAnswerer answerer() const { return asking(model_); }
  SquadAnswerer asking(const Encoder& model) const { return {model, data_.padding, most_rows_, answers_}; }
  Evaluation evaluate(const Encoder& model, const Task::Progress& progress) const;
  Tensor losses(const SquadWindows& windows, const Tensor& scores) const;  // [B]

  const SquadTrainingData& data_;
  FineTuneOptions options_;
  AnswerOptions answers_;
  std::vector<SquadWindows> drawn_;
  std::optional<double> plain_ = {};
};

}  // namespace headshare
