#include "headshare/metrics/classification.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "headshare/base/error.h"

namespace headshare {
namespace {

// Every score here is made of these counts. Classes that do not occur have zeros.
struct Counts {
  std::vector<int64_t> gold;
  std::vector<int64_t> predicted;
  std::vector<int64_t> right;
  int64_t examples = 0;
  int64_t all_right = 0;
};

void check_pairs(const char* score, const ClassPairs& pairs) {
  HS_CHECK(pairs.gold.size() == pairs.predicted.size(), score,
           " compares every prediction with its gold class: ", pairs.predicted.size(), " predictions for ",
           pairs.gold.size(), " examples");
  HS_CHECK(!pairs.gold.empty(), score, " of no examples is not defined");
  for (const auto& classes : {pairs.gold, pairs.predicted}) {
    const auto least = std::min_element(classes.begin(), classes.end());
    HS_CHECK(*least >= 0, score, ": example ", least - classes.begin(), " has the class ", *least,
             ", classes are numbers from 0; leave out examples without a label");
  }
}

Counts count(const char* score, const ClassPairs& pairs) {
  check_pairs(score, pairs);
  const int32_t most = std::max(*std::max_element(pairs.gold.begin(), pairs.gold.end()),
                                *std::max_element(pairs.predicted.begin(), pairs.predicted.end()));
  const auto classes = static_cast<size_t>(most) + 1;
  Counts counts{.gold = std::vector<int64_t>(classes),
                .predicted = std::vector<int64_t>(classes),
                .right = std::vector<int64_t>(classes),
                .examples = static_cast<int64_t>(pairs.gold.size())};
  for (size_t i = 0; i < pairs.gold.size(); ++i) {
    const auto gold = static_cast<size_t>(pairs.gold[i]);
    const auto predicted = static_cast<size_t>(pairs.predicted[i]);
    ++counts.gold[gold];
    ++counts.predicted[predicted];
    if (gold == predicted) ++counts.right[gold], ++counts.all_right;
  }
  return counts;
}

double ratio(int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

// Returns F1 of one class, which must occur in the gold or in the predictions.
double class_f1(const Counts& counts, size_t one) {
  return ratio(2 * counts.right[one], counts.gold[one] + counts.predicted[one]);
}

double sum_of_squares(const std::vector<int64_t>& values) {
  double sum = 0;
  for (const int64_t value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

}  // namespace

Score accuracy(const ClassPairs& pairs) {
  const Counts counts = count("accuracy", pairs);
  return {.name = "accuracy",
          .value = ratio(counts.all_right, counts.examples),
          .signature = join_text("accuracy|examples:", counts.examples)};
}

Score f1(const ClassPairs& pairs, int32_t positive) {
  const Counts counts = count("f1", pairs);
  const auto one = static_cast<size_t>(positive);
  Score score{.name = "f1", .signature = join_text("f1|positive:", positive, "|examples:", counts.examples)};
  if (one < counts.gold.size() && counts.gold[one] + counts.predicted[one] > 0) {
    score.value = class_f1(counts, one);
  } else {
    score.note = join_text("no example has or got the class ", positive, ": F1 is 0 by convention");
  }
  return score;
}

Score macro_f1(const ClassPairs& pairs) {
  const Counts counts = count("macro_f1", pairs);
  double sum = 0;
  int64_t classes = 0;
  for (size_t one = 0; one < counts.gold.size(); ++one) {
    if (counts.gold[one] + counts.predicted[one] == 0) continue;
    sum += class_f1(counts, one);
    ++classes;
  }
  return {.name = "macro_f1",
          .value = sum / static_cast<double>(classes),
          .signature = join_text("macro_f1|classes:", classes, "|examples:", counts.examples)};
}

Score matthews(const ClassPairs& pairs) {
  const Counts counts = count("matthews", pairs);
  Score score{.name = "matthews", .signature = join_text("matthews|examples:", counts.examples)};
  // The sums are in double: the products pass 2^63 from some 50,000 examples on.
  const auto examples = static_cast<double>(counts.examples);
  double chance = 0;
  for (size_t one = 0; one < counts.gold.size(); ++one) {
    chance += static_cast<double>(counts.gold[one]) * static_cast<double>(counts.predicted[one]);
  }
  const double together = static_cast<double>(counts.all_right) * examples - chance;
  const double gold = examples * examples - sum_of_squares(counts.gold);
  const double predicted = examples * examples - sum_of_squares(counts.predicted);
  if (gold * predicted > 0) {
    score.value = together / std::sqrt(gold * predicted);
  } else {
    score.note = join_text(gold > 0 ? "every prediction" : "every gold label",
                           " is of one class: the correlation is not defined and 0 by convention");
  }
  return score;
}

Score grouped_exact_match(const ClassPairs& pairs, std::span<const ExampleGroup> groups) {
  check_pairs("exact_match", pairs);
  HS_CHECK(groups.size() == pairs.gold.size(), "exact_match needs the group of every example: ", groups.size(),
           " groups for ", pairs.gold.size(), " examples");
  std::map<ExampleGroup, bool> right;
  for (size_t i = 0; i < groups.size(); ++i) {
    bool& all = right.try_emplace(groups[i], true).first->second;
    all = all && pairs.gold[i] == pairs.predicted[i];
  }
  const auto whole = std::count_if(right.begin(), right.end(), [](const auto& group) { return group.second; });
  return {.name = "exact_match",
          .value = ratio(whole, static_cast<int64_t>(right.size())),
          .signature = join_text("exact_match|groups:", right.size(), "|examples:", groups.size())};
}

}  // namespace headshare
