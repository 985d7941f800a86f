// Makes columns of the numbers of cells: a value for each seed, or for each block of the reported part.
#pragma once

#include <span>
#include <vector>

#include "headshare/report/results/results.h"

namespace headshare {

using Column = std::vector<double>;
using Cells = std::vector<const Cell*>;

template <class Read>
Column column(const Cells& cells, const Read& read) {
  Column values;
  for (const Cell* cell : cells) values.push_back(static_cast<double>(read(*cell)));
  return values;
}

// Returns the mean of the chosen values, each with its weight.
inline double mean_at(const Column& values, const Column& weights, std::span<const int64_t> indices) {
  double sum = 0;
  double weight = 0;
  for (const int64_t index : indices) {
    sum += weights[static_cast<size_t>(index)] * values[static_cast<size_t>(index)];
    weight += weights[static_cast<size_t>(index)];
  }
  return sum / weight;
}

}  // namespace headshare
