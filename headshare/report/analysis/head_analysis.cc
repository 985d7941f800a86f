#include "headshare/report/analysis/head_analysis.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace headshare {
namespace {

std::optional<double> mean_of(const std::vector<LayerCost>& layers,
                              const std::function<double(const LayerCost&)>& what) {
  if (layers.empty()) return std::nullopt;
  double sum = 0;
  for (const LayerCost& one : layers) sum += what(one);
  return sum / static_cast<double>(layers.size());
}

}  // namespace

double Spectrum::energy() const {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

std::vector<double> Spectrum::shares() const {
  const double all = energy();
  std::vector<double> shares;
  for (const double value : values) shares.push_back(all > 0 ? value * value / all : 0);
  return shares;
}

int64_t Spectrum::width_for(double share) const {
  const double wanted = share * energy();
  double within = 0;
  size_t count = 0;
  while (count < values.size() && within < wanted) {
    within += values[count] * values[count];
    ++count;
  }
  return static_cast<int64_t>(count) * value_dimensions;
}

std::optional<HeadPair> most_alike(const HeadSimilarity& heads) {
  std::optional<HeadPair> best;
  for (size_t i = 0; i < heads.size(); ++i) {
    for (size_t j = i + 1; j < heads.size(); ++j) {
      if (!best || heads[i][j] > best->similarity) best = HeadPair{i, j, heads[i][j]};
    }
  }
  return best;
}

std::optional<double> mean_similarity(const HeadSimilarity& heads) {
  if (heads.size() < 2) return std::nullopt;
  double sum = 0;
  for (size_t i = 0; i < heads.size(); ++i) {
    for (size_t j = i + 1; j < heads.size(); ++j) sum += heads[i][j];
  }
  return 2 * sum / static_cast<double>(heads.size() * (heads.size() - 1));
}

double LayerCost::larger() const { return std::max(scores, values); }

std::optional<double> ConversionAnalysis::scores() const {
  return mean_of(layers, [](const LayerCost& one) { return one.scores; });
}
std::optional<double> ConversionAnalysis::values() const {
  return mean_of(layers, [](const LayerCost& one) { return one.values; });
}
std::optional<double> ConversionAnalysis::larger() const {
  return mean_of(layers, [](const LayerCost& one) { return one.larger(); });
}
std::optional<double> ConversionAnalysis::output() const {
  if (layers.empty() || !layers.front().output) return std::nullopt;
  return mean_of(layers, [](const LayerCost& one) { return one.output.value_or(0); });
}

}  // namespace headshare
