// Scores extracted answers as the official scorers of SQuAD v1.1 and v2.0 compute them, to the last printed digit, in
// per cent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headshare/metrics/score.h"

namespace headshare {

enum class SquadRules { kV1, kV2 };

struct SquadGold {
  std::string id;
  std::vector<std::string> answers = {};  // any of them is right; none: the question has no answer (v2.0)
};

// The null odds say, by question id, how little the scorer should trust an answer: a probability or any other number
// that grows as "no answer" becomes likelier. They are in the order of the file, which decides between equal numbers in
// the search for a threshold.
using NullOdds = std::vector<std::pair<std::string, double>>;

struct SquadPredictions {
  std::unordered_map<std::string, std::string> answers = {};  // by question id; "" says: no answer
  std::optional<NullOdds> null_odds = {};                     // v2.0 only
  double null_threshold = 1;                                  // odds above it turn an answer into "no answer"
};

// These are the scores of some of the questions.
struct SquadPart {
  double exact_match = 0;  // per cent
  double f1 = 0;           // per cent
  int64_t total = 0;
};

// This threshold on the null odds makes the score of all questions best.
struct SquadThreshold {
  double score = 0;  // per cent
  double threshold = 0;
};

struct SquadScores {
  SquadPart all = {};
  std::optional<SquadPart> has_ans = {};          // v2.0: questions with an answer, where there are any
  std::optional<SquadPart> no_ans = {};           // v2.0: questions without an answer
  std::optional<SquadThreshold> best_exact = {};  // with null odds
  std::optional<SquadThreshold> best_f1 = {};

  // These questions have no prediction. They count as wrong. (The official v1.1 scorer says so of each; the v2.0 scorer
  // leaves them out of the mean and then stops with a KeyError.)
  int64_t missing = 0;
  std::string first_missing = {};  // an id
  int64_t unknown = 0;             // predictions for ids that are not in the gold: ignored, as by both scorers

  // Signatures hold the rules: "squad-v1.1"; with null odds the threshold, which the best scores do not depend on.
  std::string rules = {};
  std::optional<double> null_threshold = {};
};

// Throws Error when there is no question; under v1.1 for a question without an answer and for null
// odds; when a predicted question has no null odds.
SquadScores score_squad(const std::vector<SquadGold>& gold, const SquadPredictions& predictions, SquadRules rules);

// Returns exact_match, f1, total and, where they exist, has_ans_exact, has_ans_f1, has_ans_total, no_ans_exact,
// no_ans_f1, no_ans_total, best_exact, best_exact_thresh, best_f1, best_f1_thresh: the official v2.0 names but for
// exact (exact_match), HasAns_ (has_ans_) and NoAns_ (no_ans_).
std::vector<Score> to_scores(const SquadScores& scores);

}  // namespace headshare
