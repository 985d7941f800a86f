// Beam search has these options for the user.
#pragma once

#include <cstdint>

#include "headshare/base/options/field.h"

namespace headshare {

// A hypothesis of L tokens has its sum of log probabilities divided by this.
enum class LengthNorm {
  kNone,    // 1
  kLength,  // L^penalty, as transformers and fairseq do
  kGnmt,    // ((5 + L) / 6)^penalty (Wu et al., 2016, equation 14)
};

// A sentence with `beam` finished hypotheses ends by one of these rules. They are early_stopping of transformers:
// False, True, "never".
enum class EarlyStopping {
  kFalse,  // when the best unfinished hypothesis, normalised at its present length, is no better than the worst
           // finished
  kTrue,   // at once
  kNever,  // as kFalse, but normalised at the greatest length if the penalty is above 0: nothing better is missed
};

// The options lie within these bounds.
inline constexpr int64_t kMostBeams = 1024;
inline constexpr double kMostPenalty = 10;

struct BeamOptions {
  int64_t beam = 5;  // hypotheses of a sentence; 1 is greedy
  double length_penalty = 1;
  LengthNorm length_norm = LengthNorm::kLength;
  int64_t n_best = 1;
  int64_t min_length = 0;  // tokens before end-of-text
  // A hypothesis has at most so many tokens, end-of-text included. With a ratio above 0 also at most ratio * source +
  // extra.
  int64_t max_length = 256;
  double max_length_ratio = 0;
  int64_t max_length_extra = 10;
  int64_t no_repeat_ngram = 0;  // 0: n-grams may repeat
  EarlyStopping early_stopping = EarlyStopping::kFalse;
};

Fields fields(BeamOptions& options);

// Throws Error for options that are out of range or contradict each other.
void check_beam_options(const BeamOptions& options);

// Returns the divisor of the score of a hypothesis of `length` tokens, at least 1.
double length_divisor(const BeamOptions& options, int64_t length);

// Returns the greatest length of a hypothesis whose source has `source_length` tokens: at least 1, and at least
// min_length.
int64_t length_limit(const BeamOptions& options, int64_t source_length);

}  // namespace headshare
