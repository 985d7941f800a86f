// This header holds the options of collaborative attention.
#pragma once

#include <cstdint>
#include <optional>

namespace headshare {

struct CollaborativeOptions {
  std::optional<double> mixing_deviation = {};  // mixing starts from N(0, this^2)
  // If this is set, positions are rotary, pairs of dimensions are mixed as complex numbers, and they turn as in heads
  // of this width. Unset: each dimension is mixed by itself, and every pair has a frequency of its own.
  std::optional<int64_t> rotary_width = {};
};

}  // namespace headshare
