// These structs describe a search and its result.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "headshare/decode/beam/beam_options.h"
#include "headshare/decode/sampling.h"

namespace headshare {

struct SearchSentence {
  // The translation begins with these tokens: they are fed after `start`, neither scored nor counted in lengths.
  std::vector<int32_t> prefix = {};
  int64_t source_length = 0;                           // tokens, for max_length_ratio
  int64_t room = std::numeric_limits<int64_t>::max();  // tokens of a hypothesis that the model has positions for
  uint64_t sequence = 0;  // keys the random numbers of sampling, so that they do not depend on the batch
};

struct SearchRequest {
  BeamOptions options = {};
  // Tokens are drawn instead of searched; needs beam 1. Its max_new_tokens and stop are not used.
  std::optional<SamplingOptions> sampling = {};
  int32_t start = 0;                           // the first token that is fed (transformers: decoder_start_token_id)
  int32_t end_of_text = 0;                     // ends a hypothesis
  std::vector<int32_t> suppressed = {};        // never produced, such as padding
  std::optional<int32_t> forced_first = {};    // the first token of sentences without a prefix (forced_bos_token_id)
  std::optional<int32_t> forced_last = {};     // the token at the length limit (forced_eos_token_id)
  std::vector<SearchSentence> sentences = {};  // in the order of the model's rows
  std::function<void()> each_step = {};        // called before each step; what it throws ends the search
};

struct Hypothesis {
  std::vector<int32_t> tokens;      // without start and prefix; with end-of-text if `ended`
  std::vector<float> token_scores;  // the log probability of each token; 0 for forced ones
  double sum = 0;                   // of token_scores
  double score = 0;                 // sum / length_divisor
  bool ended = false;               // false: cut at the length limit, or no token was allowed
};

}  // namespace headshare
