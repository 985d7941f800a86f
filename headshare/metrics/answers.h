// Compares answers in free words as the scorers of SQuAD and ReCoRD compare them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/metrics/score.h"

namespace headshare {

// Returns the form in which answers are compared: lower case, without ASCII punctuation, without the words a, an and
// the, white space as single blanks. The steps have this order, with Python's idea of lower case, words and white
// space, as the official scorers are Python programs.
std::string normalize_answer(std::string_view answer);

// This says what two answers without a word in common are worth.
enum class NoWords {
  kNeverSame,      // SQuAD v1.1, ReCoRD: 0, also where neither has any word
  kSameIfBothAre,  // SQuAD v2.0: 1 where neither has any word (both say: no answer)
};

struct AnswerScore {
  double exact = 0;  // 0 or 1: the normalised texts are the same
  double f1 = 0;     // harmonic mean of precision and recall over the words, counted with repetitions
};

// Returns the best of either over all gold answers; zeros when there is none.
AnswerScore score_answer(const std::vector<std::string>& gold, std::string_view predicted, NoWords rule);

// This is a question of ReCoRD with its answers.
struct AnswerPair {
  std::vector<std::string> gold;         // at least one
  std::optional<std::string> predicted;  // nothing: counts as wrong
};

// Returns ReCoRD's exact_match and f1: the means over all questions, between 0 and 1. Throws Error when there is no
// question.
std::vector<Score> record_scores(const std::vector<AnswerPair>& questions);

}  // namespace headshare
