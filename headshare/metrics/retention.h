// The MHE paper has two ratios: how much of multi-head quality a variant keeps (PRR), and how much quality each added
// parameter buys (PEoP). Examples and checks: docs/mathematics.md#prr-and-peop.
//
//   PRR  = 100 * M / M_MHA                         higher is better (accuracy, F1, BLEU)
//   PRR  = 100 * (2 - M / M_MHA)                   lower is better (perplexity, a loss)
//   PEoP = (M / M_SHA - 1) / (P / P_SHA - 1)       higher is better
//   PEoP = (1 - M / M_SHA) / (P / P_SHA - 1)       lower is better
//
// The rules for lower-is-better are headshare's own: the paper defines none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "headshare/metrics/statistics.h"

namespace headshare {

enum class Direction { kHigherIsBetter, kLowerIsBetter };

// PRR compares a variant with multi-head attention, in the same unit.
struct PrrQuestion {
  double quality = 0;
  double quality_mha = 0;
  Direction direction = Direction::kHigherIsBetter;
  double full_scale = 1;  // what a perfect score is: 1, 100; 1 for perplexity
};

// PEoP compares a variant with single-head attention. Parameters are exact counts of the attention sub-layers without
// biases: with counts rounded to 8.88M and 8.85M the paper's own values do not come out.
struct PeopQuestion {
  double quality = 0;
  double quality_sha = 0;
  int64_t parameters = 0;
  int64_t parameters_sha = 0;
  Direction direction = Direction::kHigherIsBetter;
  double full_scale = 1;
  bool is_sha = false;  // the variant is the reference itself
};

// This is a ratio, or the reason why there is none. Always print `rule` with the number.
struct Retention {
  std::optional<double> value;
  std::string reason_undefined;      // a sentence; empty when there is a value
  std::string rule;                  // "PRR = 100 * M / M_MHA"
  std::optional<Interval> interval;  // around `value`
  std::string interval_rule;         // "95% Fieller interval over 3 paired seeds", or why there is none
};

// The ratio is undefined, with the reason, when a quality is not finite, or the reference is below 1% of full_scale
// (near 0, as Matthews correlations can be): a ratio to it would amplify every error more than a hundred times. PEoP is
// also undefined for SHA itself, for P = P_SHA and for P < P_SHA. Throws Error for parameter counts below 1. The
// interval stays empty.
Retention prr(const PrrQuestion& question);
Retention peop(const PeopQuestion& question);

// Each side has one quality per seed, paired by index; `quality` fields of the question are ignored. The value is the
// ratio of the means (what the paper prints), the interval is Fieller's (ratio_interval), exact for normal scores;
// given from kFewestToJudge seeds on, because those of two may be narrow by accident. The parameter counts are exact
// numbers and add nothing to it.
Retention prr_over_seeds(PrrQuestion question, std::span<const double> quality, std::span<const double> quality_mha,
                         double confidence = kConfidence);
Retention peop_over_seeds(PeopQuestion question, std::span<const double> quality, std::span<const double> quality_sha,
                          double confidence = kConfidence);

}  // namespace headshare
