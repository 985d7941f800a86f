// The key width of each layer, within the limits that a user gives.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace headshare {

// The widths that are tried for a layer: `parts` even steps up to the full width, each a multiple of `step`, ascending.
std::vector<int64_t> tried_widths(int64_t full, int64_t step, int64_t parts);

// The least of `widths`, ascending, with an error of at most `most`, by bisection; the last, which is exact, is not
// tried. It asks for tries_within(widths) errors at most.
int64_t width_within(const std::vector<int64_t>& widths, double most, const std::function<double(int64_t)>& error);
int64_t tries_within(const std::vector<int64_t>& widths);

// The widths of so many layers, of `widths`, that together cost at most `budget` parameters, `per_width` for each unit
// of width: from the least on, the layer grows whose squared error falls most for its parameters. error(layer, width)
// is asked once, and only where the budget may reach. Throws Error with the least that is possible where the budget is
// smaller.
using LayerError = std::function<double(size_t layer, int64_t width)>;
std::vector<int64_t> widths_in_budget(const std::vector<int64_t>& widths, size_t layers, const LayerError& error,
                                      int64_t per_width, int64_t budget);

}  // namespace headshare
