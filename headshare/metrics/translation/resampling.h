// Tells how far a score, or a difference of two, is due to the choice of segments: by the bootstrap (Koehn, 2004) and
// approximate randomisation (Riezler and Maxwell, 2005), with the random numbers and the roundings of sacreBLEU 2.6.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "headshare/metrics/translation/translation_metric.h"

namespace headshare {

struct Resampling {
  int64_t samples = 1000;  // resamples, or trials: at least 2
  uint64_t seed = 12345;
  std::function<void()> check_interrupted = {};  // called now and then; may throw
};

// This is the middle 95 % of the resamples: `mean` ± `half_width`.
struct ScoreInterval {
  double mean = 0;
  double half_width = 0;
};

struct SystemResult {
  double score = 0;
  std::optional<ScoreInterval> interval = {};  // of the bootstrap
  // The p-value says how likely a difference to the first system as large or larger is by chance. It is absent for that
  // system.
  std::optional<double> p_value = {};
};

// Computes the interval of one system as `sacrebleu --confidence` does.
ScoreInterval bootstrap_interval(const TranslationMetric& metric, const SegmentTable& system,
                                 const Resampling& resampling);

// They compare as `sacrebleu --paired-bs` and `--paired-ar` do: every system against the first, each with the same
// draws. They throw Error unless there are two or more systems with equally many segments, at least one and fewer than
// 2^32.
std::vector<SystemResult> paired_bootstrap(const TranslationMetric& metric, const std::vector<SegmentTable>& systems,
                                           const Resampling& resampling);
std::vector<SystemResult> paired_randomisation(const TranslationMetric& metric,
                                               const std::vector<SegmentTable>& systems, const Resampling& resampling);

}  // namespace headshare
