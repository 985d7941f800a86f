#include "headshare/tasks/translation/corpus_scores.h"

#include "headshare/metrics/translation/bleu.h"
#include "headshare/metrics/translation/chrf.h"
#include "headshare/metrics/translation/resampling.h"
#include "headshare/metrics/translation/signature.h"

namespace headshare {
namespace {

Score named_score(const TranslationMetric& metric, const std::string& name, const std::vector<MixedNumber>& sums) {
  return {.name = name,
          .value = metric.score(sums).value,
          .signature = name + "|" + signature(metric, {.version = "headshare-" HEADSHARE_VERSION})};
}

Interval interval_of(const ScoreInterval& found) {
  return {.low = found.mean - found.half_width, .high = found.mean + found.half_width};
}

std::vector<double> jackknife(const TranslationMetric& metric, const SegmentTable& table,
                              const std::vector<MixedNumber>& sums) {
  const auto n = static_cast<double>(table.segments());
  const double whole = metric.score(sums).value;
  std::vector<double> values;
  for (size_t segment = 0; segment < table.segments(); ++segment) {
    std::vector<MixedNumber> without = sums;
    const std::span<const double> row = table.row(segment);
    for (size_t i = 0; i < row.size(); ++i) without[i] = without[i] - row[i];
    values.push_back(n * whole - (n - 1) * metric.score(without).value);
  }
  return values;
}

}  // namespace

CorpusScores score_corpus(const std::vector<std::string>& translations, const std::vector<std::string>& references) {
  const Bleu bleu{BleuOptions()};
  const Chrf chrf{ChrfOptions()};
  const SegmentTable counts = bleu.measure(translations, {references});
  const SegmentTable chrf_counts = chrf.measure(translations, {references});
  const std::vector<MixedNumber> sums = column_sums(counts);
  CorpusScores scores{.bleu = named_score(bleu, "bleu", sums),
                      .chrf = named_score(chrf, "chrf", column_sums(chrf_counts)),
                      .pseudo_values = jackknife(bleu, counts, sums)};
  scores.bleu.interval = interval_of(bootstrap_interval(bleu, counts, {}));
  scores.chrf.interval = interval_of(bootstrap_interval(chrf, chrf_counts, {}));
  return scores;
}

}  // namespace headshare
