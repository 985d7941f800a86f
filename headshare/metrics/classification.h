// Scores predicted classes against gold classes, equal to scikit-learn's; all scores are between 0 and 1, the
// correlation between -1 and 1.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "headshare/metrics/score.h"

namespace headshare {

// These are the gold and the predicted class of each example, paired by index. Classes are numbers from 0.
struct ClassPairs {
  std::span<const int32_t> gold;
  std::span<const int32_t> predicted;
};

// Everything below throws Error when the two differ in length, when there is no example, and for a
// class below 0.

// Returns the share of the examples whose class is right.
Score accuracy(const ClassPairs& pairs);

// Returns F1 of one class: 2 TP / (2 TP + FP + FN). It is 0, with a note, when the class is neither in the gold nor in
// the predictions (sklearn.metrics.f1_score, average="binary").
Score f1(const ClassPairs& pairs, int32_t positive = 1);

// Returns the mean of the F1 of every class that occurs in the gold or in the predictions (sklearn.metrics.f1_score,
// average="macro"); it is CommitmentBank's F1.
Score macro_f1(const ClassPairs& pairs);

// Returns Matthews' correlation for two classes, Gorodkin's R_K for more (sklearn.metrics.matthews_corrcoef). It is 0,
// with a note, when the gold or the predictions have one class only: the correlation is 0/0 then.
Score matthews(const ClassPairs& pairs);

// A group is a passage and a question on it: questions may be numbered anew for each passage.
using ExampleGroup = std::pair<int64_t, int64_t>;

// Returns the share of the groups in which every example is right: MultiRC's EM, where a group is a question and an
// example one of its answer options. `groups` names the group of each example, in any order.
Score grouped_exact_match(const ClassPairs& pairs, std::span<const ExampleGroup> groups);

}  // namespace headshare
