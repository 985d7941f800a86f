#include "headshare/tasks/masked/unseen_words.h"

#include <unordered_set>

#include "headshare/base/error.h"

namespace headshare {
namespace {

using Words = std::unordered_set<int64_t>;

Words words_of(const TokenData& tokens) {
  Words words;
  for (int64_t i = 0; i < tokens.size(); ++i) words.insert(tokens[i]);
  return words;
}

struct Counts {
  Words types, unseen_types;
  int64_t words = 0, unseen_words = 0;
  double nats = 0;      // of the windows with an unseen word
  int64_t targets = 0;  // targets of these windows
};

double share(size_t part, size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::vector<Score> unseen_word_scores(const TokenData& training, const ScoredText& text, const std::string& how) {
  const Words seen = words_of(training);
  const DisjointWindows windows(text.tokens, text.rows, text.context);
  Counts counts;
  size_t scored = 0;  // windows with a mean, so far
  for (int64_t i = 0; i < windows.windows(); ++i) {
    bool any = false;
    bool unseen = false;
    for (const int64_t id : windows.rows(i, 1).ids) {
      if (!text.rows.ordinary(id)) continue;
      any = true;
      ++counts.words;
      counts.types.insert(id);
      if (seen.contains(id)) continue;
      unseen = true;
      ++counts.unseen_words;
      counts.unseen_types.insert(id);
    }
    if (!any) continue;
    if (unseen) {
      const int64_t targets = text.losses.window_targets.at(scored);
      counts.nats += text.losses.window_means.at(scored) * static_cast<double>(targets);
      counts.targets += targets;
    }
    ++scored;
  }
  HS_CHECK(scored == text.losses.window_means.size(), "the losses are of ", text.losses.window_means.size(),
           " windows, and the text has ", scored);
  const auto score = [&](const char* name, double value) {
    return Score{.name = name, .value = value, .signature = name + how};
  };
  std::vector<Score> scores = {
      score("unseen-types", share(counts.unseen_types.size(), counts.types.size())),
      score("unseen-words", share(static_cast<size_t>(counts.unseen_words), static_cast<size_t>(counts.words)))};
  if (counts.targets > 0) {
    scores.push_back(score("unseen-rows-loss", counts.nats / static_cast<double>(counts.targets)));
  }
  return scores;
}

}  // namespace headshare
