// Chooses a token from the logits of one position.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headshare/base/options/field.h"
#include "headshare/base/rng.h"

namespace headshare {

struct SamplingOptions {
  bool greedy = false;
  double temperature = 1;         // 0 means greedy
  int64_t top_k = 0;              // 0: all tokens
  double top_p = 1;               // 1: all tokens
  double min_p = 0;               // 0: all tokens
  double repetition_penalty = 1;  // 1: none
  int64_t seed = 0;
  int64_t max_new_tokens = 256;
  std::vector<std::string> stop = {};
};

Fields fields(SamplingOptions& options);

// This is a token that may come next.
struct Candidate {
  int32_t token = 0;
  double probability = 0;  // after all filters; the candidates' sum is 1
};

// Returns the tokens left after the filters, by rising id, never none. The filters and their order are those of Hugging
// Face transformers 5.23 (generation/logits_process.py):
//   repetition penalty  each token of `history`, once: logit / penalty if logit > 0, else logit * penalty
//   temperature         logit / temperature
//   top-k               tokens below the k-th largest logit go; ties with it stay
//   top-p               the most probable tokens stay until their sum reaches top_p; the one that
//                       crosses stays
//   min-p               tokens less probable than min_p * (the largest probability) go
// Greedy decoding keeps the token with the largest penalised logit, the lowest id among equals. `logits` is [V];
// -infinity forbids a token. `history` is prompt and output so far. Throws Error for a logit that is NaN or +infinity,
// for a V where every token is forbidden, for a history token outside the vocabulary and for options out of range.
std::vector<Candidate> next_candidates(const SamplingOptions& options, std::span<const float> logits,
                                       std::span<const int32_t> history);

// Draws tokens. The random number of a token depends on (seed, sequence, its position) alone, so that sequence i of a
// batch gets the same tokens as on its own.
class Sampler {
 public:
  explicit Sampler(SamplingOptions options, uint64_t sequence = 0);

  int32_t next(std::span<const float> logits, std::span<const int32_t> history);

 private:
  SamplingOptions options_;
  Philox random_;
};

}  // namespace headshare
