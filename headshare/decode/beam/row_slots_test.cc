#include "headshare/decode/beam/row_slots.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Returns the fewest copies of all ways to give the children slots.
int64_t fewest_copies(const std::vector<int64_t>& parents, int64_t slots) {
  std::vector<int64_t> order(static_cast<size_t>(slots));
  std::iota(order.begin(), order.end(), 0);
  auto fewest = static_cast<int64_t>(parents.size());
  do {
    int64_t copies = 0;
    for (size_t i = 0; i < parents.size(); ++i) copies += order[i] != parents[i] ? 1 : 0;
    fewest = std::min(fewest, copies);
  } while (std::next_permutation(order.begin(), order.end()));
  return fewest;
}

TEST(RowSlotsTest, FirstChildrenStayAndOthersFillFreeSlots) {
  const SlotPlan plan = plan_slots(std::vector<int64_t>{2, 2, 0, 2}, 4);
  EXPECT_THAT(plan.slots, ElementsAre(2, 1, 0, 3));
  ASSERT_EQ(plan.moves.size(), 2u);
  EXPECT_EQ(plan.moves[0].from, 2);
  EXPECT_EQ(plan.moves[0].to, 1);
  EXPECT_EQ(plan.moves[1].to, 3);
}

TEST(RowSlotsTest, APermutationNeedsNoCopy) {
  EXPECT_THAT(plan_slots(std::vector<int64_t>{3, 1, 0, 2}, 4).moves, IsEmpty());
  EXPECT_THAT(plan_slots({}, 4).slots, IsEmpty());
}

// For every choice of up to 5 children of up to 5 parents the result is that of a full reorder, with the fewest copies.
TEST(RowSlotsTest, MovesAreFewestAndEqualAFullReorder) {
  std::mt19937 random(1);
  for (int64_t slots = 1; slots <= 5; ++slots) {
    for (int trial = 0; trial < 200; ++trial) {
      std::vector<int64_t> parents(random() % static_cast<uint32_t>(slots + 1));
      for (int64_t& parent : parents) parent = static_cast<int64_t>(random() % static_cast<uint32_t>(slots));
      const SlotPlan plan = plan_slots(parents, slots);
      std::vector<int64_t> rows(static_cast<size_t>(slots));  // what each slot holds: at first its own number
      std::iota(rows.begin(), rows.end(), 0);
      for (const RowMove& one : plan.moves) rows[static_cast<size_t>(one.to)] = rows[static_cast<size_t>(one.from)];
      std::vector<int64_t> held;
      for (const int64_t slot : plan.slots) held.push_back(rows[static_cast<size_t>(slot)]);
      EXPECT_EQ(held, parents);
      std::vector<int64_t> taken = plan.slots;
      std::sort(taken.begin(), taken.end());
      EXPECT_EQ(std::adjacent_find(taken.begin(), taken.end()), taken.end());
      EXPECT_EQ(static_cast<int64_t>(plan.moves.size()), fewest_copies(parents, slots));
    }
  }
}

TEST(RowSlotsTest, KeepFillsHolesFromTheEnd) {
  EXPECT_THAT(plan_keep({false, true, false, false}), ElementsAre(0, 3, 2));
  EXPECT_THAT(plan_keep({true, true, false, true, false}), ElementsAre(2, 4));
  EXPECT_THAT(plan_keep({false, false, true}), ElementsAre(0, 1));
  EXPECT_THAT(plan_keep({true, true}), IsEmpty());
}

}  // namespace
}  // namespace headshare
