// Questions about texts are answered the same way in evaluations and by `predict`.
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

// An AnswerCandidate is a piece of a paragraph.
struct AnswerCandidate {
  std::string text;
  double score = 0;  // start score + end score
};

// SquadAnswers are what a model answers to the questions of a set, in their order there.
struct SquadAnswers {
  std::vector<std::vector<AnswerCandidate>> candidates;  // of each question, the best first, no text twice
  std::vector<double> null_odds;  // the score of "no answer", the least over its windows, less the best candidate's
};

// WindowScores are the scores of one window's row, [T] each. add_candidates() adds the candidates that they give, and
// the score of "no answer".
struct WindowScores {
  const float* start;
  const float* end;
};
void add_candidates(const SquadSet& set, const SquadWindow& window, const WindowScores& scores,
                    const AnswerOptions& options, std::vector<AnswerCandidate>* candidates);

// Makes predictions as score_squad wants them. A question without a candidate is answered with "".
SquadPredictions to_predictions(const SquadData& data, const SquadAnswers& answers);

// Returns f1 in per cent; where a question may have no answer, best_f1, with the threshold that makes it best.
double squad_goal(const SquadScores& scores);

// SquadWindows are read together.
using SquadWindows = std::vector<const SquadWindow*>;

// A SquadAnswerer is an encoder whose head gives each token a score as start and one as end. It refers to the encoder.
struct SquadAnswerer {
  const Encoder& model;
  int64_t padding = 0;   // the token that fills rows
  size_t most_rows = 1;  // rows that are read together
  AnswerOptions options = {};
};

// Returns scores [B, T, 2]; where a row has no token, -inf.
Tensor place_scores(const SquadAnswerer& answerer, const SquadWindows& windows);

// Returns the same, with hidden states where these are wanted.
RowsRead read_windows(const SquadAnswerer& answerer, const SquadWindows& windows, bool states);

// Returns what the model answers to all questions; it is in evaluation mode meanwhile, and nothing has gradients.
// `seen` is called with the scores of every batch and may be empty.
SquadAnswers answer_all(const SquadAnswerer& answerer, const SquadSet& set, const Task::Progress& progress,
                        const std::function<void(const SquadWindows&, const Tensor& scores)>& seen);

// Counts the tokens of each window's row.
std::vector<int64_t> lengths_of(const std::vector<SquadWindow>& windows);

}  // namespace headshare
