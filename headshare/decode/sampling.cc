#include "headshare/decode/sampling.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <unordered_set>

#include "headshare/base/error.h"

namespace headshare {
namespace {

void check_options(const SamplingOptions& options) {
  HS_CHECK(options.temperature >= 0, "temperature must be at least 0, not ", options.temperature);
  HS_CHECK(options.top_k >= 0, "top-k must be at least 0 (0 keeps all tokens), not ", options.top_k);
  HS_CHECK(options.top_p >= 0 && options.top_p <= 1, "top-p must lie in 0..1, not ", options.top_p);
  HS_CHECK(options.min_p >= 0 && options.min_p <= 1, "min-p must lie in 0..1, not ", options.min_p);
  HS_CHECK(options.repetition_penalty > 0, "repetition-penalty must be above 0 (1 is none), not ",
           options.repetition_penalty);
}

// Returns every logit as a candidate that still carries its logit in place of a probability.
std::vector<Candidate> read_logits(std::span<const float> logits) {
  HS_CHECK(!logits.empty(), "there are no logits to choose a token from");
  std::vector<Candidate> candidates(logits.size());
  bool any = false;
  for (size_t i = 0; i < logits.size(); ++i) {
    // The comparison is false for NaN, too.
    HS_CHECK(logits[i] < INFINITY, "the logit of token ", i, " is ", logits[i],
             ": the model has diverged, or its checkpoint is damaged");
    any = any || std::isfinite(logits[i]);
    candidates[i] = {static_cast<int32_t>(i), logits[i]};
  }
  HS_CHECK(any, "all ", logits.size(), " tokens are forbidden: every logit is -infinity");
  return candidates;
}

void penalise_repetition(double penalty, std::span<const int32_t> history, std::vector<Candidate>* candidates) {
  if (penalty == 1) return;
  const std::unordered_set<int32_t> seen(history.begin(), history.end());
  for (const int32_t token : seen) {
    HS_CHECK(token >= 0 && static_cast<size_t>(token) < candidates->size(), "token ", token,
             " of the text so far is outside the vocabulary of ", candidates->size());
    double& logit = (*candidates)[static_cast<size_t>(token)].probability;
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
}

bool more_probable(const Candidate& a, const Candidate& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
}

void keep_top_k(int64_t k, std::vector<Candidate>* candidates) {
  if (k == 0 || static_cast<size_t>(k) >= candidates->size()) return;
  std::vector<Candidate> order = *candidates;
  std::nth_element(order.begin(), order.begin() + (k - 1), order.end(), more_probable);
  const double least = order[static_cast<size_t>(k - 1)].probability;
  std::erase_if(*candidates, [least](const Candidate& one) { return one.probability < least; });
}

void softmax(double temperature, std::vector<Candidate>* candidates) {
  double largest = -INFINITY;
  for (const Candidate& one : *candidates) largest = std::max(largest, one.probability);
  double sum = 0;
  for (Candidate& one : *candidates) sum += one.probability = std::exp((one.probability - largest) / temperature);
  for (Candidate& one : *candidates) one.probability /= sum;
}

void keep_top_p(double p, std::vector<Candidate>* candidates) {
  if (p >= 1) return;
  // Tokens this improbable hold half of 1 - p at most, all together: none of them is kept, so they
  // need no place in the sort, the slow part for a large vocabulary.
  const double negligible = (1 - p) / (2 * static_cast<double>(candidates->size()));
  std::vector<Candidate> order;
  std::copy_if(candidates->begin(), candidates->end(), std::back_inserter(order),
               [negligible](const Candidate& one) { return one.probability > negligible; });
  std::sort(order.begin(), order.end(), more_probable);
  double sum = 0;
  size_t kept = 0;
  do {
    sum += order[kept++].probability;
  } while (kept < order.size() && sum < p);
  const Candidate last = order[kept - 1];
  std::erase_if(*candidates, [&last](const Candidate& one) { return more_probable(last, one); });
}

// Tokens without any probability go too.
void keep_min_p(double min_p, std::vector<Candidate>* candidates) {
  const double least = min_p * std::min_element(candidates->begin(), candidates->end(), more_probable)->probability;
  std::erase_if(*candidates, [least](const Candidate& one) { return one.probability < least || one.probability == 0; });
}

void normalise(std::vector<Candidate>* candidates) {
  double sum = 0;
  for (const Candidate& one : *candidates) sum += one.probability;
  for (Candidate& one : *candidates) one.probability /= sum;
}

}  // namespace

Fields fields(SamplingOptions& options) {
  return {
      field("greedy", &options.greedy, "always take the most probable token"),
      field("temperature", &options.temperature, "divides the logits; below 1 is bolder, 0 is greedy", {.min = 0}),
      field("top-k", &options.top_k, "draw from the k most probable tokens; 0: from all", {.min = 0}),
      field("top-p", &options.top_p, "draw from the fewest tokens that hold this probability", {.min = 0, .max = 1}),
      field("min-p", &options.min_p, "drop tokens less probable than this share of the best", {.min = 0, .max = 1}),
      field("repetition-penalty", &options.repetition_penalty, "above 1 makes tokens already there less probable",
            {.min = 0.01, .max = 100}),
      field("seed", &options.seed, "the same seed draws the same tokens"),
      field("max-new-tokens", &options.max_new_tokens, "stop after this many tokens",
            {.min = 0, .aliases = {"max-tokens", "n-predict"}}),
      field("stop", &options.stop, "stop before any of these texts", {.aliases = {"stop-strings"}}),
  };
}

std::vector<Candidate> next_candidates(const SamplingOptions& options, std::span<const float> logits,
                                       std::span<const int32_t> history) {
  check_options(options);
  std::vector<Candidate> candidates = read_logits(logits);
  penalise_repetition(options.repetition_penalty, history, &candidates);
  if (options.greedy || options.temperature == 0) {
    const Candidate best = *std::min_element(candidates.begin(), candidates.end(), more_probable);
    return {{best.token, 1.0}};
  }
  // Dividing by the temperature changes no order, so it can wait for the softmax.
  keep_top_k(options.top_k, &candidates);
  softmax(options.temperature, &candidates);
  keep_top_p(options.top_p, &candidates);
  keep_min_p(options.min_p, &candidates);
  normalise(&candidates);
  return candidates;
}

Sampler::Sampler(SamplingOptions options, uint64_t sequence)
    : options_(std::move(options)),
      random_(stream_key(stream_key(static_cast<uint64_t>(options_.seed), "sampling"), sequence)) {
  check_options(options_);
}

int32_t Sampler::next(std::span<const float> logits, std::span<const int32_t> history) {
  const std::vector<Candidate> candidates = next_candidates(options_, logits, history);
  double rest = random_.uniform();
  for (const Candidate& one : candidates) {
    rest -= one.probability;
    if (rest < 0) return one.token;
  }
  return candidates.back().token;  // rounding left a crumb of probability
}

}  // namespace headshare
