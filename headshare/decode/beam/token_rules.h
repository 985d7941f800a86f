// Decides which tokens a hypothesis may continue with.
#pragma once

#include <cstdint>
#include <span>

#include "headshare/decode/beam/search_request.h"

namespace headshare {

// Rules look at this state of a hypothesis.
struct RulePosition {
  std::span<const int32_t> history = {};  // start, prefix and output; may be empty unless TokenRules::read_history()
  bool behind_start = false;              // only `start` has been fed
  int64_t generated = 0;                  // tokens of the output
  int64_t limit = 0;                      // the greatest length of the output
};

// Applies the logits processors of transformers, in their order: no repeated n-gram, no end-of-text before min_length,
// the forced first token, the forced last token, suppressed tokens.
class TokenRules {
 public:
  // Throws Error for a token that is both forced and suppressed. `request` must outlive the rules.
  explicit TokenRules(const SearchRequest& request);

  // Throws Error if a token of the request is not in 0 .. vocabulary - 1.
  void check_vocabulary(int64_t vocabulary) const;

  // Sets the scores of forbidden tokens to -infinity, and of a forced one to 0.
  void apply(const RulePosition& position, std::span<float> scores) const;

  // Tells whether apply() reads the history, which takes time to collect.
  bool read_history() const { return request_.options.no_repeat_ngram > 0; }

 private:
  std::optional<int32_t> forced(const RulePosition& position) const;

  const SearchRequest& request_;
};

}  // namespace headshare
