#include "headshare/decode/beam/token_rules.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"

namespace headshare {
namespace {

void forbid_repeated_ngrams(int64_t size, std::span<const int32_t> history, std::span<float> scores) {
  const auto n = static_cast<size_t>(size);
  if (history.size() < n) return;
  const auto last = history.last(n - 1);
  for (size_t begin = 0; begin + n <= history.size(); ++begin) {
    if (!std::ranges::equal(history.subspan(begin, n - 1), last)) continue;
    scores[static_cast<size_t>(history[begin + n - 1])] = -INFINITY;
  }
}

void refuse_suppressed(const SearchRequest& request, const std::optional<int32_t>& forced, const char* which) {
  if (!forced) return;
  const auto& suppressed = request.suppressed;
  HS_CHECK(std::find(suppressed.begin(), suppressed.end(), *forced) == suppressed.end(), "token ", *forced,
           " is forced as the ", which, " token and is suppressed too: remove it from one of the two");
}

void check_token(int32_t token, int64_t vocabulary, const std::string& what) {
  HS_CHECK(token >= 0 && token < vocabulary, what, " is token ", token, ", outside the model's vocabulary of ",
           vocabulary, ": use the tokenizer that the model was trained with");
}

}  // namespace

TokenRules::TokenRules(const SearchRequest& request) : request_(request) {
  refuse_suppressed(request, request.forced_first, "first");
  refuse_suppressed(request, request.forced_last, "last");
}

void TokenRules::check_vocabulary(int64_t vocabulary) const {
  check_token(request_.start, vocabulary, "the start token");
  check_token(request_.end_of_text, vocabulary, "end-of-text");
  if (request_.forced_first) check_token(*request_.forced_first, vocabulary, "the forced first token");
  if (request_.forced_last) check_token(*request_.forced_last, vocabulary, "the forced last token");
  for (const int32_t token : request_.suppressed) check_token(token, vocabulary, "a suppressed token");
  for (size_t i = 0; i < request_.sentences.size(); ++i) {
    for (const int32_t token : request_.sentences[i].prefix) {
      check_token(token, vocabulary, join_text("in the prefix of sentence ", i, " there"));
    }
  }
}

std::optional<int32_t> TokenRules::forced(const RulePosition& position) const {
  if (request_.forced_last && position.generated + 1 == position.limit) return request_.forced_last;
  // transformers forces it only behind a lone start token.
  if (request_.forced_first && position.behind_start) return request_.forced_first;
  return std::nullopt;
}

void TokenRules::apply(const RulePosition& position, std::span<float> scores) const {
  if (const std::optional<int32_t> token = forced(position)) {
    std::fill(scores.begin(), scores.end(), -INFINITY);
    scores[static_cast<size_t>(*token)] = 0;
    return;  // it is not suppressed
  }
  const BeamOptions& options = request_.options;
  if (options.no_repeat_ngram > 0) forbid_repeated_ngrams(options.no_repeat_ngram, position.history, scores);
  if (position.generated < options.min_length) scores[static_cast<size_t>(request_.end_of_text)] = -INFINITY;
  for (const int32_t token : request_.suppressed) scores[static_cast<size_t>(token)] = -INFINITY;
}

}  // namespace headshare
