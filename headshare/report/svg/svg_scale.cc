#include "headshare/report/svg/svg_scale.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/strings/format.h"

namespace headshare {
namespace {

constexpr double kSpareRange = 0.06;  // of the range, on both sides

// Returns the smallest of 1, 2, 5 times a power of ten that is at least `step`.
double round_step(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::vector<Tick> linear_ticks(double low, double high, int count) {
  const double step = round_step((high - low) / count);
  const double largest = std::max(std::abs(low), std::abs(high));  // one unit for all; "1000" beside "800"
  std::vector<Tick> ticks;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && ticks.size() < 50; ++i) {
    ticks.push_back({i * step, tick_label(i * step, step, largest < 1e4 ? 1 : largest)});
  }
  return ticks;
}

std::vector<Tick> decade_ticks(double low, double high, const std::vector<double>& factors) {
  std::vector<Tick> ticks;
  for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10) {
    for (const double factor : factors) {
      const double value = factor * power;
      if (value >= low && value <= high) ticks.push_back({value, tick_label(value, value, value)});
    }
  }
  return ticks;
}

}  // namespace

double Scale::operator()(double value) const {
  const double share = logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return from + share * (to - from);
}

Scale fitted_scale(const std::vector<double>& values, bool logarithmic, double from, double to) {
  if (values.empty()) return {.from = from, .to = to};
  auto [low, high] = std::minmax_element(values.begin(), values.end());
  Scale scale{.low = *low, .high = *high, .from = from, .to = to, .logarithmic = logarithmic && *low > 0};
  if (scale.logarithmic) {
    const double margin = scale.high > scale.low ? std::pow(scale.high / scale.low, kSpareRange) : 2;
    scale.low /= margin;
    scale.high *= margin;
    return scale;
  }
  // With large numbers that agree to the last digits nothing would be left of a margin.
  const double least = std::max({std::abs(scale.low), std::abs(scale.high), 1e-6}) * 1e-3;
  const double margin = std::max((scale.high - scale.low) * kSpareRange, least);
  scale.low -= margin;
  scale.high += margin;
  return scale;
}

std::vector<Tick> round_ticks(const Scale& scale, int count) {
  if (!scale.logarithmic) return linear_ticks(scale.low, scale.high, count);
  for (const std::vector<double>& factors : {std::vector<double>{1}, {1, 3}, {1, 2, 5}, {1, 1.5, 2, 3, 5, 7}}) {
    std::vector<Tick> ticks = decade_ticks(scale.low, scale.high, factors);
    if (ticks.size() >= 3) return ticks;
  }
  return linear_ticks(scale.low, scale.high, count);
}

std::string tick_label(double value, double step, double unit_of) {
  struct Unit {
    double size;
    const char* name;
  };
  Unit unit{1, ""};
  for (const Unit larger : {Unit{1e3, "k"}, Unit{1e6, "M"}, Unit{1e9, "G"}}) {
    if (std::abs(unit_of) >= larger.size * 0.9999) unit = larger;
  }
  const double shown = value / unit.size;
  int digits = 0;
  for (double unit_step = step / unit.size;
       digits < 8 && std::abs(unit_step - std::round(unit_step)) > 1e-6 * unit_step; unit_step *= 10) {
    ++digits;
  }
  const bool zero = std::abs(value) < step * 1e-6;
  return (value < 0 && !zero ? "−" : "") + format_fixed(zero ? 0 : std::abs(shown), digits) + unit.name;
}

}  // namespace headshare
