// Computes chrF and chrF++ (Popović, 2015 and 2017) as sacreBLEU 2.6 does: F scores over n-grams of characters and, for
// chrF++, words.
#pragma once

#include "headshare/metrics/translation/translation_metric.h"

namespace headshare {

struct ChrfOptions {
  int64_t char_order = 6;  // longest n-gram of characters
  int64_t word_order = 0;  // of words; 2 makes it chrF++
  int64_t beta = 2;        // recall counts beta times as much as precision
  bool lowercase = false;
  bool whitespace = false;     // white space belongs to the n-grams of characters
  bool eps_smoothing = false;  // as chrF++.py, NLTK and Moses: all orders count; else those that both sides have
};

class Chrf : public TranslationMetric {
 public:
  static constexpr int64_t kMostOrder = 64;
  static constexpr int64_t kMostBeta = 1000;

  // Throws Error when an order is not in 0..64, both are 0, or beta is not in 1..1000.
  explicit Chrf(const ChrfOptions& options);

  std::string name() const override;
  std::vector<SignaturePart> settings() const override;
  size_t columns() const override { return 3 * orders(); }
  MixedNumber score(std::span<const MixedNumber> sums) const override;

 protected:
  std::unique_ptr<RowReader> reader() const override;

 private:
  size_t orders() const { return static_cast<size_t>(options_.char_order + options_.word_order); }

  ChrfOptions options_;
};

}  // namespace headshare
