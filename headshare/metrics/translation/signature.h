// A signature says what a score of a translation depends on, in sacreBLEU's form.
#pragma once

#include <optional>
#include <string>

#include "headshare/metrics/translation/translation_metric.h"

namespace headshare {

// These go into a signature besides the metric's settings.
struct SignatureContext {
  size_t references = 1;
  std::optional<int64_t> bootstrap = {};      // resamples
  std::optional<int64_t> randomisation = {};  // trials
  uint64_t seed = 12345;                      // said with either
  std::string version = {};                   // of the program: "headshare-0.1.0"
};

// Returns "nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|version:headshare-0.1.0", for example.
std::string signature(const TranslationMetric& metric, const SignatureContext& context);

}  // namespace headshare
