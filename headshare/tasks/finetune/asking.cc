#include "headshare/tasks/finetune/asking.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "headshare/tasks/evaluation_mode.h"
#include "headshare/tasks/finetune/example_order.h"

namespace headshare {

std::vector<int64_t> lengths_of(const QuestionSet& set) {
  std::vector<int64_t> lengths;
  for (const Question& question : set.questions) {
    size_t longest = 0;
    for (const EncodedRow& row : question.rows) longest = std::max(longest, row.ids.size());
    lengths.push_back(static_cast<int64_t>(longest));
  }
  return lengths;
}

Tensor row_scores(const Answerer& answerer, const QuestionBatch& batch) {
  return read_rows(answerer, batch, /*states=*/false).scores;
}

RowsRead read_rows(const Answerer& answerer, const QuestionBatch& batch, bool states) {
  RowPointers rows;
  for (const ShownQuestion& asked : batch) {
    for (const size_t row : asked.rows) rows.push_back(&asked.question->rows[row]);
  }
  const Encoder& model = answerer.model;
  const EncoderInput input = to_input(rows, answerer.padding, model->options(), model->device());
  const bool of_text = answerer.kind.head == TaskHeadKind::kText;
  if (of_text && !states) return {model->text_scores(input)};
  const Tensor hidden = model->hidden(input);
  RowsRead read{of_text ? model->text_scores_of(hidden)
                        : model->word_scores_of(hidden, word_weights(rows, input.ids.size(1), model->device()))};
  if (states) read.states = states_of_tokens(hidden, input);
  return read;
}

Answers answers_of(const QuestionKind& kind, const QuestionBatch& batch, const Tensor& scores) {
  const Tensor values = scores.to(at::kCPU, at::kFloat);
  Answers answers;
  int64_t first = 0;
  for (const ShownQuestion& asked : batch) {
    const auto count = static_cast<int64_t>(asked.rows.size());
    const Tensor own = values.narrow(0, first, count);
    answers.push_back(kind.form == AnswerForm::kNumber ? own.item<double>()
                                                       : static_cast<double>(own.argmax().item<int64_t>()));
    first += count;
  }
  return answers;
}

Answers ask_all(const Answerer& answerer, const QuestionSet& set, const Task::Progress& progress, const OnBatch& seen) {
  const EvaluationMode evaluating(answerer.model.ptr());
  const at::NoGradGuard no_grad;
  const std::vector<size_t> order = shortest_first(lengths_of(set));
  Answers answers(order.size());
  for (size_t done = 0; done < order.size();) {
    QuestionBatch batch;
    const size_t first = done;
    for (size_t rows = 0; done < order.size() && rows < answerer.most_rows; ++done) {
      const Question& question = set.questions[order[done]];
      ShownQuestion asked{.question = &question, .rows = std::vector<size_t>(question.rows.size())};
      std::iota(asked.rows.begin(), asked.rows.end(), size_t{0});
      rows += question.rows.size();
      batch.push_back(std::move(asked));
    }
    const Tensor scores = row_scores(answerer, batch);
    const std::span<const size_t> places(order.data() + first, batch.size());
    if (seen) seen(batch, places, scores);
    const Answers some = answers_of(answerer.kind, batch, scores);
    for (size_t i = 0; i < some.size(); ++i) answers[places[i]] = some[i];
    if (progress) progress(static_cast<int64_t>(done), static_cast<int64_t>(order.size()));
  }
  return answers;
}

}  // namespace headshare
