#include "headshare/convert/shared_heads/layer_sizes.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/convert/collaborative/widths.h"

namespace headshare {
namespace {

constexpr int64_t kPartsOfSizes = 64;  // sizes that a budget is shared in

int64_t full_size(const ErrorsBySize& layer) { return static_cast<int64_t>(layer.scores.size()) - 1; }

int64_t size_within(const ErrorsBySize& layer, double most) {
  const auto is_within = [most](const std::vector<double>& rest, int64_t size) {
    return rest[static_cast<size_t>(size)] <= most * most * rest.front();
  };
  int64_t size = 1;
  while (size < full_size(layer) && !(is_within(layer.scores, size) && is_within(layer.values, size))) ++size;
  return size;
}

std::vector<int64_t> sizes_on_average(const std::vector<ErrorsBySize>& layers, int64_t mean) {
  const int64_t full = full_size(layers.front());
  HS_CHECK(mean <= full, "a mean of ", mean, " is above ", full, ", at which every layer is exact; give ", full,
           " or less");
  double scores = 0, values = 0;
  for (const ErrorsBySize& layer : layers) {
    scores += layer.scores.front();
    values += layer.values.front();
  }
  const auto share = [](double of, double all) { return all > 0 ? of / all : 0; };
  const LayerError error = [&](size_t layer, int64_t size) {
    const auto at = static_cast<size_t>(size);
    return std::sqrt(share(layers[layer].scores[at], scores) + share(layers[layer].values[at], values));
  };
  std::vector<int64_t> tried = tried_widths(full, /*step=*/1, kPartsOfSizes);
  if (tried.front() > mean) tried.front() = mean;
  return widths_in_budget(tried, layers.size(), error, /*per_width=*/1, mean * static_cast<int64_t>(layers.size()));
}

}  // namespace

std::vector<int64_t> sizes_of_layers(const std::vector<ErrorsBySize>& layers, const SizeChoice& choice) {
  if (choice.mean) return sizes_on_average(layers, *choice.mean);
  std::vector<int64_t> sizes;
  for (const ErrorsBySize& layer : layers) sizes.push_back(size_within(layer, *choice.max_error));
  return sizes;
}

}  // namespace headshare
