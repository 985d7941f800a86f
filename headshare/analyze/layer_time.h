// This header measures how long one attention layer takes: layers of different schemes take turns.
#pragma once

#include <vector>

#include "headshare/attention/options.h"
#include "headshare/bench/timing.h"

namespace headshare {

struct LayerWork {
  bool decoding = true;  // one token after a cache with all others; else all tokens at once, each seeing every other
  int64_t tokens = 1;
};

// Returns the milliseconds of one attention layer for each of the options, with random weights: their values change no
// time. They are the least of all rounds, to which other programs add least. Layers are made one for each of the
// options, all at once.
std::vector<double> layer_milliseconds(const std::vector<AttentionOptions>& layers, const LayerWork& work,
                                       const TurnOptions& turns);

}  // namespace headshare
