#include "headshare/decode/beam/row_slots.h"

#include <algorithm>

#include "headshare/base/error.h"

namespace headshare {

SlotPlan plan_slots(std::span<const int64_t> parents, int64_t slots) {
  HS_DCHECK(static_cast<int64_t>(parents.size()) <= slots);
  std::vector<bool> continued(static_cast<size_t>(slots), false);
  for (const int64_t parent : parents) continued[static_cast<size_t>(parent)] = true;
  std::vector<bool> stays = continued;  // no child has taken the slot of its parent yet
  SlotPlan plan;
  int64_t free = 0;
  for (const int64_t parent : parents) {
    if (stays[static_cast<size_t>(parent)]) {
      stays[static_cast<size_t>(parent)] = false;
      plan.slots.push_back(parent);
      continue;
    }
    while (continued[static_cast<size_t>(free)]) ++free;
    plan.slots.push_back(free);
    plan.moves.push_back({.from = parent, .to = free++});
  }
  return plan;
}

std::vector<int64_t> plan_keep(const std::vector<bool>& finished) {
  const auto left = static_cast<size_t>(std::count(finished.begin(), finished.end(), false));
  std::vector<int64_t> order;
  size_t behind = left;
  for (size_t place = 0; place < left; ++place) {
    size_t from = place;
    if (finished[place]) {
      while (finished[behind]) ++behind;
      from = behind++;
    }
    order.push_back(static_cast<int64_t>(from));
  }
  return order;
}

}  // namespace headshare
