// A LabelledTask fine-tunes on questions with a class, a number or a choice as their answer: GLUE, SuperGLUE and the
// user's own table.
#pragma once

#include <memory>

#include "headshare/tasks/finetune/asking.h"
#include "headshare/tasks/finetune/fine_tune_task.h"
#include "headshare/tasks/finetune/fine_tuned_teacher.h"

namespace headshare {

// LabelledData are the data of a task as rows: read once, shared by all runs.
struct LabelledData {
  QuestionKind kind;
  QuestionSet train = {};
  QuestionSet validation = {};
  int64_t padding = 0;
  std::shared_ptr<Tokenizer> tokenizer;
  TaskNote note = {};  // what is saved with a model
  FineTunedTeacher teacher = {};
};

class LabelledTask : public FineTuneTask {
 public:
  // Takes over the model that starting_model() made, on the CPU; the data must outlive the task.
  LabelledTask(const LabelledData& data, const FineTuneOptions& options, Encoder model, uint64_t seed,
               c10::Device device, TrainingShape shape = {});

  int64_t draw(int64_t micro_batches) override;

  // Sums the losses: the cross-entropy of classes; for rows, -log of the share of the right ones in a softmax over a
  // question's rows; the squared error of numbers. A teacher's share is the divergence of logits, for numbers the
  // squared difference; its hidden states are those of all tokens.
  Tensor loss_sum(int64_t index) override;
  std::optional<double> plain_loss_sum() const override { return plain_; }

  // Returns the task's metrics on the validation part; the goal is their mean. Blocks are 1 where a question is
  // answered right and 0 elsewhere; numbers have none.
  Evaluation evaluate(Part part, const Task::Progress& progress) override;
  std::optional<Evaluation> evaluate_teacher(const Task::Progress& progress) override;

  // Returns what the model answers to the questions of any part.
  Answers answers(const QuestionSet& set, const Task::Progress& progress);

 private:
  Answerer answerer() const { return asking(model_); }
  Answerer asking(const Encoder& model) const { return {model, data_.kind, data_.padding, most_rows_}; }
  Evaluation evaluate(const Encoder& model, const Task::Progress& progress) const;
  ShownQuestion draw_rows(const Question& question) const;
  Tensor losses(const QuestionBatch& batch, const Tensor& scores) const;                                 // [N]
  Tensor divergences_of(const QuestionBatch& batch, const Tensor& scores, const Tensor& teacher) const;  // [N]
  void add_scores(const QuestionSet& set, const Answers& answers, Evaluation* result) const;

  const LabelledData& data_;
  FineTuneOptions options_;
  uint64_t row_key_;
  std::vector<QuestionBatch> drawn_;
  std::optional<double> plain_ = {};
};

}  // namespace headshare
