// How far a score, or a difference of two, is due to the choice of segments: the bootstrap (Koehn, 2004) and
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

// The middle 95 % of the resamples: `mean` ± `half_width`.
struct ScoreInterval {
  double mean = 0;
  double half_width = 0;
};

struct SystemResult {
  double score = 0;
  std::optional<ScoreInterval> interval = {};  // of the bootstrap
  // Of the difference to the first system: how likely one as large or larger is by chance. Absent for that system.
  std::optional<double> p_value = {};
};

// As `sacrebleu --confidence`, of one system.
ScoreInterval bootstrap_interval(const TranslationMetric& metric, const SegmentTable& system,
                                 const Resampling& resampling);

// As `sacrebleu --paired-bs` and `--paired-ar`: every system against the first, each with the same draws. Throw Error
// unless there are two or more systems with equally many segments, at least one and fewer than 2^32.
std::vector<SystemResult> paired_bootstrap(const TranslationMetric& metric, const std::vector<SegmentTable>& systems,
                                           const Resampling& resampling);
std::vector<SystemResult> paired_randomisation(const TranslationMetric& metric,
                                               const std::vector<SegmentTable>& systems, const Resampling& resampling);

}  // namespace headshare
