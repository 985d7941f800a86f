#include "headshare/metrics/translation/resampling.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/metrics/translation/numpy_generator.h"

namespace headshare {
namespace {

using Scores = std::vector<MixedNumber>;

void check(const std::vector<SegmentTable>& systems, const Resampling& resampling, size_t least) {
  HS_CHECK(systems.size() >= least, "a paired test compares two or more systems, not ", systems.size());
  HS_CHECK(resampling.samples >= 2, "resampling needs at least 2 samples, not ", resampling.samples);
  const size_t segments = systems[0].segments();
  HS_CHECK(segments > 0 && segments < UINT32_MAX, "resampling needs 1..2^32-2 segments, not ", segments);
  for (size_t s = 1; s < systems.size(); ++s) {
    HS_CHECK(systems[s].segments() == segments, "a paired test compares segment by segment: system ", s + 1, " has ",
             systems[s].segments(), ", the first has ", segments);
  }
}

void pause(const Resampling& resampling) {
  if (resampling.check_interrupted) resampling.check_interrupted();
}

// Returns, for each system, the scores of all resamples. Sums are of single precision, added up in the order of the
// draws.
std::vector<Scores> bootstrap_scores(const TranslationMetric& metric, const std::vector<SegmentTable>& systems,
                                     const Resampling& resampling) {
  const size_t columns = systems[0].columns;
  std::vector<std::vector<float>> tables;
  for (const SegmentTable& one : systems) tables.emplace_back(one.values.begin(), one.values.end());
  std::vector<Scores> scores(systems.size());
  NumpyGenerator generator(resampling.seed);
  std::vector<uint32_t> drawn(systems[0].segments());
  std::vector<float> sums(columns);
  Scores numbers(columns);
  for (int64_t sample = 0; sample < resampling.samples; ++sample) {
    pause(resampling);
    generator.draw_below(static_cast<uint32_t>(drawn.size()), drawn);
    for (size_t s = 0; s < tables.size(); ++s) {
      std::fill(sums.begin(), sums.end(), 0.0F);
      for (const uint32_t segment : drawn) {
        const float* row = tables[s].data() + segment * columns;
        for (size_t k = 0; k < columns; ++k) sums[k] += row[k];
      }
      std::transform(sums.begin(), sums.end(), numbers.begin(), MixedNumber::of_float);
      scores[s].push_back(metric.score(numbers));
    }
  }
  return scores;
}

Scores sorted(Scores scores) {
  std::sort(scores.begin(), scores.end(), [](MixedNumber a, MixedNumber b) { return a.value < b.value; });
  return scores;
}

// Returns half of the distance between the scores that leave a fortieth on each side.
double half_width(const Scores& sorted) {
  const size_t outside = sorted.size() / 40;
  return (MixedNumber(0.5) * (sorted[sorted.size() - outside - 1] - sorted[outside])).value;
}

// Returns how likely the samples are above what was found; the one that was found counts among them.
double p_value(size_t above, int64_t samples) {
  return static_cast<double>(above + 1) / static_cast<double>(samples + 1);
}

std::vector<SystemResult> plain_scores(const TranslationMetric& metric, const std::vector<SegmentTable>& systems) {
  std::vector<SystemResult> results;
  for (const SegmentTable& one : systems) results.push_back({.score = metric.score(column_sums(one)).value});
  return results;
}

}  // namespace

ScoreInterval bootstrap_interval(const TranslationMetric& metric, const SegmentTable& system,
                                 const Resampling& resampling) {
  check({system}, resampling, 1);
  const Scores scores = bootstrap_scores(metric, {system}, resampling)[0];
  // Python's statistics.mean rounds once.
  long double sum = 0;
  for (const MixedNumber& one : scores) sum += one.value;
  return {static_cast<double>(sum / static_cast<long double>(scores.size())), half_width(sorted(scores))};
}

std::vector<SystemResult> paired_bootstrap(const TranslationMetric& metric, const std::vector<SegmentTable>& systems,
                                           const Resampling& resampling) {
  check(systems, resampling, 2);
  std::vector<SystemResult> results = plain_scores(metric, systems);
  const std::vector<Scores> scores = bootstrap_scores(metric, systems, resampling);
  const MixedArray baseline(scores[0]);
  for (size_t s = 0; s < systems.size(); ++s) {
    const Scores ascending = sorted(scores[s]);  // sacreBLEU's mean adds them up in this order
    results[s].interval = {MixedArray(ascending).mean().value, half_width(ascending)};
    if (s == 0) continue;
    const MixedArray own(scores[s]);
    const MixedArray differences = own.distances(baseline);
    const double found = std::abs(results[0].score - results[s].score);
    results[s].p_value = p_value(differences.count_above(differences.mean().value, found), resampling.samples);
  }
  return results;
}

std::vector<SystemResult> paired_randomisation(const TranslationMetric& metric,
                                               const std::vector<SegmentTable>& systems, const Resampling& resampling) {
  check(systems, resampling, 2);
  std::vector<SystemResult> results = plain_scores(metric, systems);
  const size_t columns = systems[0].columns;
  const size_t segments = systems[0].segments();
  // A gain is what the sums of a system gain where it takes a segment of the first one.
  std::vector<std::vector<double>> gains(systems.size(), systems[0].values);
  std::vector<Scores> totals;
  for (size_t s = 0; s < systems.size(); ++s) {
    for (size_t i = 0; i < gains[s].size(); ++i) gains[s][i] -= systems[s].values[i];
    totals.push_back(column_sums(systems[s]));
  }
  std::vector<size_t> above(systems.size());
  std::vector<uint8_t> bits(segments);
  std::vector<double> gained(columns);
  Scores one(columns);
  Scores other(columns);
  NumpyGenerator generator(resampling.seed);
  for (int64_t trial = 0; trial < resampling.samples; ++trial) {
    pause(resampling);
    generator.draw_bits(bits);
    for (size_t s = 1; s < systems.size(); ++s) {
      std::fill(gained.begin(), gained.end(), 0);
      for (size_t i = 0; i < segments; ++i) {
        if (bits[i] == 0) continue;
        for (size_t k = 0; k < columns; ++k) gained[k] += gains[s][i * columns + k];
      }
      for (size_t k = 0; k < columns; ++k) {
        one[k] = totals[s][k].value + gained[k];
        other[k] = totals[0][k].value - gained[k];
      }
      const double found = std::abs(results[0].score - results[s].score);
      above[s] += std::abs(metric.score(one).value - metric.score(other).value) > found ? 1 : 0;
    }
  }
  for (size_t s = 1; s < systems.size(); ++s) results[s].p_value = p_value(above[s], resampling.samples);
  return results;
}

}  // namespace headshare
