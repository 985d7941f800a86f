#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "headshare/base/testing.h"
#include "headshare/tasks/diagnostics/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

DiagnosticOptions induction(int64_t length, int64_t alphabet) {
  return {.kind = DiagnosticKind::kInduction, .sequence_length = length, .alphabet = alphabet};
}

TEST(InductionTest, WhatFollowedTheTokenBeforeIsAsked) {
  for (const DiagnosticOptions& options : {induction(8, 4), induction(33, 16), induction(64, 100)}) {
    expect_sound(options, [](const Sequence& drawn) {
      const std::vector<int64_t>& x = drawn.inputs;
      for (size_t i = 0; i < x.size(); ++i) {
        if (drawn.targets[i] == kIgnoredTarget) {
          EXPECT_LT(i, x.size() / 2);
          continue;
        }
        // The task asks for the token after the place, which followed the present token every time before.
        if (i + 1 < x.size()) {
          EXPECT_EQ(drawn.targets[i], x[i + 1]);
        }
        size_t seen = 0;
        for (size_t j = 0; j < i; ++j) {
          if (x[j] != x[i]) continue;
          ++seen;
          EXPECT_EQ(x[j + 1], drawn.targets[i]);
        }
        EXPECT_GE(seen, 1u) << "place " << i << " is not in the repeated part";
      }
    });
  }
}

TEST(InductionTest, NoFixedOffsetSolvesIt) {
  const auto generator = make_generator(induction(32, 16));
  std::set<size_t> periods;
  std::vector<int> right(32);
  int targets = 0;
  for (uint64_t key = 0; key < 500; ++key) {
    const Sequence drawn = draw_sequence(*generator, key);
    periods.insert(static_cast<size_t>(std::find(drawn.inputs.begin() + 1, drawn.inputs.end(), drawn.inputs[0]) -
                                       drawn.inputs.begin()));
    for (size_t i = 16; i < 32; ++i) {
      ++targets;
      for (size_t back = 0; back <= i; ++back) right[back] += drawn.inputs[i - back] == drawn.targets[i] ? 1 : 0;
    }
  }
  EXPECT_EQ(periods, (std::set<size_t>{8, 9, 10, 11, 12, 13, 14, 15, 16}));
  // Looking 15 back is best: it fits two of the nine lengths, 16 and 8.
  for (const int count : right) EXPECT_LT(count, targets / 4);
  EXPECT_GT(right[15], targets / 6);
}

TEST(InductionTest, RefusesWhatCannotRepeat) {
  EXPECT_THAT(error_message([] { make_generator(induction(7, 16)); }),
              AllOf(HasSubstr("at least 8 tokens"), HasSubstr("not 7"), HasSubstr("--sequence-length")));
  EXPECT_THAT(error_message([] { make_generator(induction(32, 15)); }),
              AllOf(HasSubstr("16"), HasSubstr("15"), HasSubstr("--alphabet")));
}

}  // namespace
}  // namespace headshare
