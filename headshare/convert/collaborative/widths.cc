#include "headshare/convert/collaborative/widths.h"

#include <algorithm>
#include <bit>

#include "headshare/base/error.h"

namespace headshare {

std::vector<int64_t> tried_widths(int64_t full, int64_t step, int64_t parts) {
  std::vector<int64_t> widths;
  for (int64_t i = 1; i <= parts; ++i) {
    const int64_t width = std::max(step, full * i / parts / step * step);
    if (widths.empty() || width > widths.back()) widths.push_back(width);
  }
  return widths;
}

int64_t width_within(const std::vector<int64_t>& widths, double most, const std::function<double(int64_t)>& error) {
  size_t below = 0;                  // all before it are too narrow
  size_t above = widths.size() - 1;  // wide enough
  while (below < above) {
    const size_t middle = (below + above) / 2;
    if (error(widths[middle]) <= most) {
      above = middle;
    } else {
      below = middle + 1;
    }
  }
  return widths[above];
}

int64_t tries_within(const std::vector<int64_t>& widths) {
  return static_cast<int64_t>(std::bit_width(widths.size() - 1));
}

std::vector<int64_t> widths_in_budget(const std::vector<int64_t>& widths, size_t layers, const LayerError& error,
                                      int64_t per_width, int64_t budget) {
  std::vector<size_t> chosen(layers, 0);
  std::vector<std::vector<double>> errors(layers);  // known so far, from the least width on
  int64_t left = budget - static_cast<int64_t>(layers) * widths.front() * per_width;
  HS_CHECK(left >= 0, "the narrowest layers, ", widths.front(), " wide, take ", budget - left,
           " parameters for queries, keys and mixing, ", budget, " are left for them");
  const auto squared = [&](size_t layer, size_t i) {
    while (errors[layer].size() <= i) errors[layer].push_back(error(layer, widths[errors[layer].size()]));
    return errors[layer][i] * errors[layer][i];
  };
  const auto gain = [&](size_t layer) {  // squared error for each parameter more
    const size_t i = chosen[layer];
    if (i + 1 == widths.size() || (widths[i + 1] - widths[i]) * per_width > left) return -1.0;
    const double fall = squared(layer, i) - squared(layer, i + 1);
    return std::max(fall, 0.0) / static_cast<double>(widths[i + 1] - widths[i]);
  };
  while (true) {
    std::vector<double> gains;
    for (size_t layer = 0; layer < layers; ++layer) gains.push_back(gain(layer));
    const auto best = std::max_element(gains.begin(), gains.end());
    if (best == gains.end() || *best < 0) break;
    size_t& i = chosen[static_cast<size_t>(best - gains.begin())];
    left -= (widths[i + 1] - widths[i]) * per_width;
    ++i;
  }
  std::vector<int64_t> result;
  for (const size_t i : chosen) result.push_back(widths[i]);
  return result;
}

}  // namespace headshare
