#include "headshare/kernels/tiles.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headshare/kernels/tiles-inl.h"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include "headshare/kernels/tiles-inl.h"

#if HWY_ONCE
#include "headshare/base/error.h"

namespace headshare::kernels {

HWY_EXPORT(tiles_table);

const Tiles& tiles() { return *HWY_DYNAMIC_DISPATCH(tiles_table)(); }

namespace {

// Returns the instruction sets that this file was compiled for and the CPU has, best (lowest bit) first.
std::vector<int64_t> usable_targets() {
  std::vector<int64_t> usable;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) usable.push_back(target);
  std::sort(usable.begin(), usable.end());
  return usable;
}

}  // namespace

std::string tiles_target() {
  const int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(supported & -supported);
}

std::vector<std::string> tiles_targets() {
  std::vector<std::string> names;
  for (const int64_t target : usable_targets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

void force_tiles_target(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  if (name.empty()) return;
  for (const int64_t target : usable_targets()) {
    if (name == hwy::TargetName(target)) return hwy::SetSupportedTargetsForTest(target);
  }
  throw Error("this CPU has no instruction set " + name);
}

}  // namespace headshare::kernels
#endif
