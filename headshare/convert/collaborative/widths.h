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

// The widths of all layers, of `widths`, that together cost at most `budget` parameters, `per_width` for each unit of
// width: from the least on, the layer grows whose squared error falls most for its parameters. errors[layer][i] is that
// at widths[i]. Throws Error with the least that is possible where the budget is smaller.
std::vector<int64_t> widths_in_budget(const std::vector<int64_t>& widths,
                                      const std::vector<std::vector<double>>& errors, int64_t per_width,
                                      int64_t budget);

}  // namespace headshare
