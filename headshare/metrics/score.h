// A score is a number that says how it was computed: two scores may be compared when their signatures agree.
#pragma once

#include <optional>
#include <string>

#include "headshare/metrics/statistics.h"

namespace headshare {

struct Score {
  std::string name;  // "perplexity"
  double value = 0;
  std::string signature = {};  // "perplexity|objective:causal|tokenizer:bpe|context:128|stride:64|tokens:4096"
  std::optional<Interval> interval = {};  // 95 %, over other samples of what was scored; absent where not computed
  std::string note = {};                  // a sentence where the value is a convention, not a measurement; else empty
};

}  // namespace headshare
