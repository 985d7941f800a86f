#include "headshare/decode/beam/test_slow_search.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/log_softmax.h>

#include <algorithm>
#include <cmath>

namespace headshare {
namespace {

using Tokens = std::vector<int64_t>;

bool repeats_ngram(const Tokens& tokens, int64_t n) {
  if (n == 0 || static_cast<int64_t>(tokens.size()) <= n) return false;
  const auto last = tokens.end() - n;
  return std::search(tokens.begin(), tokens.end() - 1, last, tokens.end()) != tokens.end() - 1;
}

class Slow {
 public:
  Slow(const SearchRequest& request, size_t sentence, int64_t vocabulary, const HistoryScores& scores)
      : request_(request), sentence_(sentence), vocabulary_(vocabulary), scores_(scores) {
    prompt_.push_back(request.start);
    for (const int32_t token : request.sentences[sentence].prefix) prompt_.push_back(token);
  }

  std::vector<Hypothesis> run() {
    const BeamOptions& o = request_.options;
    const int64_t limit = length_limit(o, request_.sentences[sentence_].source_length);
    const auto beam = static_cast<size_t>(o.beam);
    std::vector<Hypothesis> live(1);
    std::vector<Hypothesis> finished;
    for (int64_t length = 1; length <= limit; ++length) {
      std::vector<Hypothesis> all;
      for (const Hypothesis& one : live) extend(one, length, limit, &all);
      if (all.empty()) {
        for (Hypothesis one : live) finished.push_back(scored(one, length - 1));
        keep_best(&finished, beam);
        break;
      }
      std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.sum > b.sum; });
      all.resize(std::min(all.size(), beam == 1 ? 1 : 2 * beam));
      live.clear();
      for (size_t rank = 0; rank < all.size(); ++rank) {
        const bool ends = all[rank].ended || length == limit;
        if (ends && rank < beam) finished.push_back(scored(all[rank], length));
        if (!ends && live.size() < beam) live.push_back(all[rank]);
      }
      keep_best(&finished, beam);
      if (live.empty()) break;
      if (finished.size() < beam) continue;
      if (o.early_stopping == EarlyStopping::kTrue) break;
      const int64_t hoped = o.early_stopping == EarlyStopping::kNever && o.length_penalty > 0 ? limit : length;
      if (!(scored(live[0], hoped).score > finished.back().score)) break;
    }
    finished.resize(std::min(finished.size(), static_cast<size_t>(o.n_best)));
    return finished;
  }

 private:
  Hypothesis scored(Hypothesis one, int64_t length) const {
    const double divisor = length_divisor(request_.options, std::max<int64_t>(length, 1));
    one.score = static_cast<float>(one.sum) / static_cast<float>(divisor);
    return one;
  }

  static void keep_best(std::vector<Hypothesis>* finished, size_t beam) {
    std::stable_sort(finished->begin(), finished->end(),
                     [](const auto& a, const auto& b) { return a.score > b.score; });
    finished->resize(std::min(finished->size(), beam));
  }

  bool allowed(const Tokens& tokens, int64_t length) const {
    const auto token = static_cast<int32_t>(tokens.back());
    const auto& suppressed = request_.suppressed;
    return !repeats_ngram(tokens, request_.options.no_repeat_ngram) &&
           (token != request_.end_of_text || length > request_.options.min_length) &&
           std::find(suppressed.begin(), suppressed.end(), token) == suppressed.end();
  }

  void extend(const Hypothesis& one, int64_t length, int64_t limit, std::vector<Hypothesis>* all) const {
    Tokens history = prompt_;
    for (const int32_t token : one.tokens) history.push_back(token);
    std::vector<float> row(static_cast<size_t>(vocabulary_));
    scores_(static_cast<int64_t>(sentence_), history, row);
    const Tensor logs = at::log_softmax(at::from_blob(row.data(), {1, vocabulary_}), 1);
    std::optional<int32_t> forced;
    if (history.size() == 1) forced = request_.forced_first;
    if (length == limit && request_.forced_last) forced = request_.forced_last;
    history.push_back(0);
    for (int32_t token = 0; token < vocabulary_; ++token) {
      history.back() = token;
      if (forced ? token != *forced : !allowed(history, length)) continue;
      const float log = forced ? 0.0F : logs.data_ptr<float>()[token];
      Hypothesis& longer = all->emplace_back(one);
      longer.tokens.push_back(token);
      longer.token_scores.push_back(log);
      longer.sum = static_cast<float>(one.sum) + log;
      longer.ended = token == request_.end_of_text;
    }
  }

  const SearchRequest& request_;
  size_t sentence_;
  int64_t vocabulary_;
  const HistoryScores& scores_;
  Tokens prompt_ = {};
};

}  // namespace

std::vector<Hypothesis> slow_search(const SearchRequest& request, size_t sentence, int64_t vocabulary,
                                    const HistoryScores& scores) {
  return Slow(request, sentence, vocabulary, scores).run();
}

}  // namespace headshare
