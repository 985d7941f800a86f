// This header lists the ways to make a trained model's heads share, as `headshare convert` does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "headshare/convert/collaborative/collaborative.h"
#include "headshare/report/analysis/head_analysis.h"

namespace headshare {

// This is one layer, on its way through a conversion.
struct ConversionLayer {
  const HeadMaps& maps;
  LayerInputs inputs = {};
  DecompositionOptions decomposition = {};
  DecompositionProgress progress = nullptr;
};

struct Conversion {
  std::string scheme;               // "collaborative"
  std::string name;                 // "collaborative 384" (its key width), "gqa:4"
  std::string command;              // for `headshare convert MODEL OUT`
  std::string impossible;           // why this model cannot become one; the rest is empty then
  AttentionOptions attention = {};  // of the converted model, resolved
  double work = 1;                  // about how long it takes, in units of the quickest one
  // Fills a layer of those options as `convert` does -> the errors that `convert` reports.
  std::function<LayerCost(const ConversionLayer&, Scheme* target)> fill = nullptr;
};

// A source says what a model can become.
struct ConversionSource {
  AttentionOptions attention = {};  // resolved
  NeededBiases needed = {};
  bool needs_biases = false;         // needs_biases() of any layer
  int64_t full_width = 0;            // the least of all layers
  std::vector<int64_t> widths = {};  // key widths to try; empty: 3/4, 1/2 and 1/4 of the full one
};

// Lists all conversions: collaborative with each width, widest first, gqa with each number of groups, the other
// schemes. A conversion to what the model is already is left out. Throws Error, naming both numbers, for widths that
// are impossible.
std::vector<Conversion> conversions(const ConversionSource& source);

}  // namespace headshare
