// A number that says how it was computed: two scores may be compared when their signatures agree.
#pragma once

#include <string>

namespace headshare {

struct Score {
  std::string name;  // "perplexity"
  double value = 0;
  std::string signature = {};  // "perplexity|objective:causal|tokenizer:bpe|context:128|stride:64|tokens:4096"
  std::string note = {};       // a sentence where the value is a convention, not a measurement; else empty
};

}  // namespace headshare
