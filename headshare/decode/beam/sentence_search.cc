#include "headshare/decode/beam/sentence_search.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/decode/beam/row_slots.h"

namespace headshare {

SentenceSearch::SentenceSearch(const SearchRequest& request, const TokenRules& rules, size_t index)
    : request_(request),
      rules_(rules),
      index_(index),
      beam_(static_cast<size_t>(request.options.beam)),
      limit_(std::min(length_limit(request.options, request.sentences[index].source_length),
                      request.sentences[index].room)),
      last_(beam_, request.start) {
  if (request.sampling) sampler_.emplace(*request.sampling, request.sentences[index].sequence);
}

std::vector<RowMove> SentenceSearch::step(const SentenceScores& scores) {
  check_scores(scores);
  const std::vector<int32_t>& prefix = request_.sentences[index_].prefix;
  if (fed_prefix_ < prefix.size()) {
    last_.assign(beam_, prefix[fed_prefix_++]);
    return {};
  }
  const std::vector<Continuation> best = continuations(scores);
  if (best.empty()) {  // no token is allowed: the hypotheses end as they are
    for (const Live& one : live_) finish(one.node, one.sum, generated_, false);
    done_ = true;
    return {};
  }
  ++generated_;
  std::vector<Live> next = grow(scores, best);
  done_ = next.empty() || !can_improve(next.front().sum);
  return done_ ? std::vector<RowMove>() : continue_with(std::move(next));
}

// One bad score makes the log softmax of its whole row NaN, and so does a row of -infinity.
void SentenceSearch::check_scores(const SentenceScores& scores) const {
  for (const Live& one : live_) {
    const int64_t row = one.slot * scores.vocabulary;
    if (!std::isnan(scores.log_probabilities[row])) continue;
    const std::span<const float> raw(scores.raw + row, static_cast<size_t>(scores.vocabulary));
    const auto bad = std::find_if(raw.begin(), raw.end(), [](float score) { return !(score < INFINITY); });
    const std::string where = join_text("sentence ", index_, " of the batch, after ", generated_, " tokens: ");
    HS_CHECK(bad != raw.end(), where, "the scores of all ", raw.size(),
             " tokens are -infinity: the model has diverged, or its checkpoint is damaged");
    throw Error(join_text(where, "the score of token ", bad - raw.begin(), " is ", *bad,
                          ": the model has diverged, or its checkpoint is damaged"));
  }
}

std::vector<int32_t> SentenceSearch::history(int32_t node) const {
  std::vector<int32_t> tokens;
  for (; node >= 0; node = nodes_[static_cast<size_t>(node)].parent) {
    tokens.push_back(nodes_[static_cast<size_t>(node)].token);
  }
  const std::vector<int32_t>& prefix = request_.sentences[index_].prefix;
  tokens.insert(tokens.end(), prefix.rbegin(), prefix.rend());
  tokens.push_back(request_.start);
  std::reverse(tokens.begin(), tokens.end());
  return tokens;
}

std::vector<Continuation> SentenceSearch::continuations(const SentenceScores& scores) {
  const auto vocabulary = static_cast<size_t>(scores.vocabulary);
  const bool reads = sampler_ || rules_.read_history();
  std::vector<ScoredRow> rows;
  for (const Live& one : live_) {
    const std::vector<int32_t> seen = reads ? history(one.node) : std::vector<int32_t>();
    const RulePosition position{
        .history = seen, .behind_start = behind_start(), .generated = generated_, .limit = limit_};
    float* row = scores.log_probabilities + one.slot * scores.vocabulary;
    rules_.apply(position, {row, vocabulary});
    rows.push_back({.log_probabilities = row, .sum = one.sum});
    if (beam_ > 1) continue;
    rules_.apply(position, {scores.raw, vocabulary});
    if (std::none_of(scores.raw, scores.raw + vocabulary, [](float score) { return score > -INFINITY; })) return {};
    return {pick(scores, seen)};
  }
  // It takes twice as many as wanted: each hypothesis may end once, and `beam` shall go on.
  return best_tokens(rows, scores.vocabulary, 2 * static_cast<int64_t>(beam_));
}

// Chooses among logits: log probabilities are rounded, so that different logits may have the same.
Continuation SentenceSearch::pick(const SentenceScores& scores, std::span<const int32_t> history) {
  const std::span<const float> raw(scores.raw, static_cast<size_t>(scores.vocabulary));
  const auto token = sampler_ ? sampler_->next(raw, history)
                              : static_cast<int32_t>(std::max_element(raw.begin(), raw.end()) - raw.begin());
  return {.row = 0, .token = token, .sum = live_.front().sum + scores.log_probabilities[token]};
}

// Adds the continuations that ended to the finished ones; returns those that go on, at most `beam`.
std::vector<SentenceSearch::Live> SentenceSearch::grow(const SentenceScores& scores,
                                                       const std::vector<Continuation>& best) {
  std::vector<Live> next;
  for (size_t rank = 0; rank < best.size(); ++rank) {
    const Continuation& one = best[rank];
    const Live& parent = live_[static_cast<size_t>(one.row)];
    const bool ended = one.token == request_.end_of_text;
    const bool stops = ended || generated_ == limit_;
    // A hypothesis that ends outside the best `beam` is dropped.
    if (stops ? rank >= beam_ : next.size() == beam_) continue;
    const auto node = static_cast<int32_t>(nodes_.size());
    nodes_.push_back({.parent = parent.node,
                      .token = one.token,
                      .score = scores.log_probabilities[parent.slot * scores.vocabulary + one.token]});
    if (stops) {
      finish(node, one.sum, generated_, ended);
    } else {
      next.push_back({.node = node, .sum = one.sum, .slot = parent.slot});
    }
  }
  return next;
}

void SentenceSearch::finish(int32_t node, float sum, int64_t length, bool ended) {
  const auto divisor = static_cast<float>(length_divisor(request_.options, std::max<int64_t>(1, length)));
  const Finished one{.node = node, .sum = sum, .score = sum / divisor, .ended = ended};
  const auto before = [](const Finished& a, const Finished& b) { return a.score > b.score; };
  finished_.insert(std::upper_bound(finished_.begin(), finished_.end(), one, before), one);
  if (finished_.size() > beam_) finished_.pop_back();
}

bool SentenceSearch::can_improve(float best_sum) const {
  if (finished_.size() < beam_) return true;
  const BeamOptions& options = request_.options;
  if (options.early_stopping == EarlyStopping::kTrue) return false;
  const bool longest = options.early_stopping == EarlyStopping::kNever && options.length_penalty > 0;
  const double divisor = length_divisor(options, longest ? limit_ : generated_);
  return best_sum / static_cast<float>(divisor) > finished_.back().score;
}

std::vector<RowMove> SentenceSearch::continue_with(std::vector<Live> next) {
  std::vector<RowMove> moves;
  if (!rows_agree_) {
    std::vector<int64_t> parents;
    for (const Live& one : next) parents.push_back(one.slot);
    SlotPlan plan = plan_slots(parents, static_cast<int64_t>(beam_));
    for (size_t i = 0; i < next.size(); ++i) next[i].slot = plan.slots[i];
    moves = std::move(plan.moves);
  } else if (next.size() > 1) {
    for (size_t i = 0; i < next.size(); ++i) next[i].slot = static_cast<int64_t>(i);
    rows_agree_ = false;
  }
  const auto token = [&](const Live& one) { return nodes_[static_cast<size_t>(one.node)].token; };
  last_.assign(beam_, rows_agree_ ? token(next.front()) : request_.end_of_text);
  for (const Live& one : next) last_[static_cast<size_t>(one.slot)] = token(one);
  live_ = std::move(next);
  return moves;
}

std::vector<Hypothesis> SentenceSearch::results() const {
  std::vector<Hypothesis> results;
  for (const Finished& one : finished_) {
    if (results.size() == static_cast<size_t>(request_.options.n_best)) break;
    Hypothesis& result = results.emplace_back();
    result.sum = one.sum;
    result.score = one.score;
    result.ended = one.ended;
    for (int32_t node = one.node; node >= 0; node = nodes_[static_cast<size_t>(node)].parent) {
      result.tokens.push_back(nodes_[static_cast<size_t>(node)].token);
      result.token_scores.push_back(nodes_[static_cast<size_t>(node)].score);
    }
    std::reverse(result.tokens.begin(), result.tokens.end());
    std::reverse(result.token_scores.begin(), result.token_scores.end());
  }
  return results;
}

}  // namespace headshare
