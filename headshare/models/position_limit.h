// Some kinds of position end at a model's context.
#pragma once

#include "headshare/models/blocks/options.h"

namespace headshare {

// Tells whether positions come from a table of `context` rows; the other kinds go on.
inline bool has_position_limit(PositionKind positions) {
  return positions == PositionKind::kLearned || positions == PositionKind::kSinusoidal;
}

}  // namespace headshare
