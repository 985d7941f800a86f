#include "headshare/text/hash/legacy_normal.h"

#include <cmath>

namespace headshare {

double LegacyNormal::uniform() {
  constexpr double kTwoTo26 = 67108864;
  constexpr double kTwoTo53 = 9007199254740992;
  const auto high = static_cast<double>(twister_() >> 5);
  const auto low = static_cast<double>(twister_() >> 6);
  return (high * kTwoTo26 + low) / kTwoTo53;
}

double LegacyNormal::next() {
  if (has_kept_) {
    has_kept_ = false;
    return kept_;
  }
  double x = 0;
  double y = 0;
  double square = 0;
  do {
    x = 2 * uniform() - 1;
    y = 2 * uniform() - 1;
    square = x * x + y * y;
  } while (square >= 1 || square == 0);
  const double scale = std::sqrt(-2 * std::log(square) / square);
  kept_ = scale * x;
  has_kept_ = true;
  return scale * y;
}

}  // namespace headshare
