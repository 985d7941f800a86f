// Searches one sentence: it holds the sentence's live and its finished hypotheses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "headshare/decode/beam/best_tokens.h"
#include "headshare/decode/beam/search_request.h"
#include "headshare/decode/beam/step_scores.h"
#include "headshare/decode/beam/token_rules.h"

namespace headshare {

// These are the scores of the rows of a sentence, both [rows, V], for the only row or one for each beam; the search
// writes into them.
struct SentenceScores {
  float* raw = nullptr;                // as the model gave them
  float* log_probabilities = nullptr;  // their log softmax
  int64_t vocabulary = 0;
};

// Follows beam search of transformers 5.23 (GenerationMixin._beam_search) for a sentence by itself, in float32 as
// there. It differs in two points. Placeholders (score -1e9) are no hypotheses here: where fewer than `beam`
// continuations are allowed there are fewer hypotheses. And equal scores keep their order: earlier hypothesis first,
// then lower token.
class SentenceSearch {
 public:
  // `index` names the sentence in errors. All arguments must outlive the object.
  SentenceSearch(const SearchRequest& request, const TokenRules& rules, size_t index);

  size_t index() const { return index_; }
  bool done() const { return done_; }

  // Tells whether all rows have seen the same tokens, so that one row is enough.
  bool rows_agree() const { return rows_agree_; }

  // Returns the next token of each row, [beam]. Rows without a hypothesis get end-of-text.
  const std::vector<int64_t>& last() const { return last_; }

  // Advances by one token. Returns the moves between rows of the sentence, 0 .. beam - 1; none when it is done. Throws
  // Error for scores that are NaN or +infinity, or all -infinity.
  std::vector<RowMove> step(const SentenceScores& scores);

  // Returns the n-best, the best first. There may be fewer. Requires done().
  std::vector<Hypothesis> results() const;

 private:
  // A hypothesis is a path from a node to the root; hypotheses share their beginnings.
  struct Node {
    int32_t parent = -1;
    int32_t token = 0;
    float score = 0;
  };
  struct Live {
    int32_t node = -1;
    float sum = 0;
    int64_t slot = 0;
  };
  struct Finished {
    int32_t node = -1;
    float sum = 0;
    float score = 0;
    bool ended = false;
  };

  std::vector<Continuation> continuations(const SentenceScores& scores);
  Continuation pick(const SentenceScores& scores, std::span<const int32_t> history);
  std::vector<int32_t> history(int32_t node) const;
  bool behind_start() const { return generated_ == 0 && request_.sentences[index_].prefix.empty(); }
  void check_scores(const SentenceScores& scores) const;
  std::vector<Live> grow(const SentenceScores& scores, const std::vector<Continuation>& best);
  void finish(int32_t node, float sum, int64_t length, bool ended);
  bool can_improve(float best_sum) const;
  std::vector<RowMove> continue_with(std::vector<Live> next);

  const SearchRequest& request_;
  const TokenRules& rules_;
  size_t index_;
  size_t beam_;
  int64_t limit_;
  std::optional<Sampler> sampler_ = {};
  size_t fed_prefix_ = 0;
  int64_t generated_ = 0;
  bool done_ = false;
  bool rows_agree_ = true;  // every row has seen the same tokens, so that children need no copy
  std::vector<Node> nodes_ = {};
  std::vector<Live> live_ = {Live{}};    // the best first
  std::vector<Finished> finished_ = {};  // the best first, at most beam
  std::vector<int64_t> last_;
};

}  // namespace headshare
