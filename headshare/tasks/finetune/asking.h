// Questions are put to an encoder with a task head the same way in training, in evaluations and by `predict`.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "headshare/tasks/finetune/questions.h"
#include "headshare/train/task.h"

namespace headshare {

// An ShownQuestion is a question and those of its rows that the encoder reads.
struct ShownQuestion {
  const Question* question;
  std::vector<size_t> rows;
};
using QuestionBatch = std::vector<ShownQuestion>;

// An Answerer is an encoder whose head answers questions of a kind. It refers to both.
struct Answerer {
  const Encoder& model;
  const QuestionKind& kind;
  int64_t padding = 0;   // the token that fills rows
  size_t most_rows = 1;  // rows that are read together
};

// Returns the head's outputs for all rows of all questions, one after the other: [R, C].
Tensor row_scores(const Answerer& answerer, const QuestionBatch& batch);

// Returns the same, with hidden states where these are wanted: that is more work where the head reads one token of a
// row.
RowsRead read_rows(const Answerer& answerer, const QuestionBatch& batch, bool states);

// Returns what these scores answer, [N].
Answers answers_of(const QuestionKind& kind, const QuestionBatch& batch, const Tensor& scores);

// `places` tells where the questions of a batch stand in the set.
using OnBatch = std::function<void(const QuestionBatch& batch, std::span<const size_t> places, const Tensor& scores)>;

// Returns what the model answers to all questions, in their order in the set; it is in evaluation mode meanwhile, and
// nothing has gradients. Short questions are asked first, so that batches have little padding. The last digits of a
// score may depend on the rows beside it: the same set with the same `most_rows` gives the same scores. `seen` may be
// empty.
Answers ask_all(const Answerer& answerer, const QuestionSet& set, const Task::Progress& progress, const OnBatch& seen);

// Counts the tokens of each question's longest row.
std::vector<int64_t> lengths_of(const QuestionSet& set);

}  // namespace headshare
