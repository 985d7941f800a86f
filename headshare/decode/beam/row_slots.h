// Plans which row of a sentence each continued hypothesis gets, with as few copies as possible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headshare/decode/beam/step_scores.h"

namespace headshare {

struct SlotPlan {
  std::vector<int64_t> slots;  // the slot of each child
  std::vector<RowMove> moves;  // from a parent's slot to a free slot
};

// `parents` has the slot (0 .. slots - 1) of each child's parent; there are at most `slots` children. The first child
// of a parent stays in the parent's slot. Every further child is copied into a slot whose hypothesis has no child. This
// is the least number of copies: a slot can serve one child without a copy, and only a child of its own hypothesis.
SlotPlan plan_slots(std::span<const int64_t> parents, int64_t slots);

// Returns the order for StepScores::keep: the sentences that go on, each at its own place except those that fill the
// places of finished ones.
std::vector<int64_t> plan_keep(const std::vector<bool>& finished);

}  // namespace headshare
