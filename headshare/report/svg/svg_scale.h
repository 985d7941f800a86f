// Maps numbers to places on paper: linear and logarithmic scales with round ticks.
#pragma once

#include <string>
#include <vector>

namespace headshare {

struct Tick {
  double value = 0;
  std::string label;  // "0.25", "20k", "1.5M"
};

// Maps [low, high] to [from, to]; `to` may lie below `from`, as y does in SVG.
struct Scale {
  double low = 0;
  double high = 1;
  double from = 0;
  double to = 1;
  bool logarithmic = false;

  double operator()(double value) const;
  bool holds(double value) const { return value >= low && value <= high; }
};

// Returns a scale over all values, with a margin on both sides, so that no point lies on the frame; where all are the
// same, around that value. Without values it is 0 to 1. It is logarithmic when asked for and all are positive.
Scale fitted_scale(const std::vector<double>& values, bool logarithmic, double from, double to);

// Returns round numbers within the scale, about `count` of them, and at least two where `count` is 5 or more: steps of
// 1, 2 or 5 times a power of ten; on a logarithmic scale those numbers themselves, unless they are too few.
std::vector<Tick> round_ticks(const Scale& scale, int count);

// Returns the label with as many digits as `step` has, in the thousands (k), millions (M), ... of `unit_of`: "12.5k".
std::string tick_label(double value, double step, double unit_of);

}  // namespace headshare
