// Fine-tuning on questions whose answer is a piece of a text: SQuAD v1.1 and v2.0.
#pragma once

#include <memory>

#include "headshare/tasks/finetune/fine_tune_task.h"
#include "headshare/tasks/finetune/squad_windows.h"

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

struct SquadTrainingData {
  SquadSet train;
  SquadSet validation;
  int64_t padding = 0;
  std::shared_ptr<Tokenizer> tokenizer;
};

class SquadTask : public FineTuneTask {
 public:
  // Takes over the model that starting_model() made, on the CPU; the data must outlive the task.
  SquadTask(const SquadTrainingData& data, const FineTuneOptions& options, const AnswerOptions& answers, Encoder model,
            uint64_t seed, c10::Device device, TrainingShape shape = {});

  int64_t draw(int64_t micro_batches) override;

  // The mean of the cross-entropies of start and end over a window's tokens.
  Tensor loss_sum(int64_t index) override;

  // The official scores of the validation part in per cent; the goal is squad_goal. Blocks are the F1 of each question
  // (v1.1).
  Evaluation evaluate(Part part, const Task::Progress& progress) override;

  SquadAnswers answers(const SquadSet& set, const Task::Progress& progress);

 private:
  using Windows = std::vector<const SquadWindow*>;

  // -> [B, T, 2]; where a row has no token, -inf.
  Tensor place_scores(const Windows& windows) const;
  Tensor losses(const Windows& windows, const Tensor& scores) const;  // [B]
  SquadAnswers judge(const SquadSet& set, const Task::Progress& progress, double* loss);

  const SquadTrainingData& data_;
  FineTuneOptions options_;
  AnswerOptions answers_;
  std::vector<Windows> drawn_;
};

}  // namespace headshare
