// Answers to questions about texts: in evaluations and by `predict` the same way.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "headshare/tasks/finetune/squad_windows.h"
#include "headshare/train/task.h"

namespace headshare {

struct AnswerOptions {
  int64_t best = 20;           // candidates kept for each question
  int64_t answer_length = 30;  // tokens
};

Fields fields(AnswerOptions& options);

// A piece of a paragraph.
struct AnswerCandidate {
  std::string text;
  double score = 0;  // start score + end score
};

// What a model answers to the questions of a set, by their order there.
struct SquadAnswers {
  std::vector<std::vector<AnswerCandidate>> candidates;  // of each question, the best first, no text twice
  std::vector<double> null_odds;  // the score of "no answer", the least over its windows, less the best candidate's
};

// The scores of one window's row, [T] each: candidates and the score of "no answer" that it gives.
struct WindowScores {
  const float* start;
  const float* end;
};
void add_candidates(const SquadSet& set, const SquadWindow& window, const WindowScores& scores,
                    const AnswerOptions& options, std::vector<AnswerCandidate>* candidates);

// Predictions as score_squad wants them. A question without a candidate is answered with "".
SquadPredictions to_predictions(const SquadData& data, const SquadAnswers& answers);

// f1 in per cent; where a question may have no answer, best_f1: with the threshold that makes it best.
double squad_goal(const SquadScores& scores);

// Windows that are looked at together.
using SquadWindows = std::vector<const SquadWindow*>;

// An encoder whose head gives each token a score as start and one as end. It is referred to.
struct SquadAnswerer {
  const Encoder& model;
  int64_t padding = 0;   // the token that fills rows
  size_t most_rows = 1;  // that are looked at together
  AnswerOptions options = {};
};

// -> [B, T, 2]; where a row has no token, -inf.
Tensor place_scores(const SquadAnswerer& answerer, const SquadWindows& windows);

// The same, with hidden states where these are wanted.
RowsRead read_windows(const SquadAnswerer& answerer, const SquadWindows& windows, bool states);

// What the model answers to all questions; it is in evaluation mode meanwhile, and nothing has gradients. `seen` is
// called with the scores of every batch and may be empty.
SquadAnswers answer_all(const SquadAnswerer& answerer, const SquadSet& set, const Task::Progress& progress,
                        const std::function<void(const SquadWindows&, const Tensor& scores)>& seen);

// Tokens of each window's row.
std::vector<int64_t> lengths_of(const std::vector<SquadWindow>& windows);

}  // namespace headshare
