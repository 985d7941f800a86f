// Computes TER (Snover et al., 2006) as sacreBLEU 2.6 does: edits and shifts of runs of words, per word of the
// reference.
#pragma once

#include "headshare/metrics/translation/tercom_words.h"
#include "headshare/metrics/translation/translation_metric.h"

namespace headshare {

class Ter : public TranslationMetric {
 public:
  explicit Ter(const TercomOptions& options) : options_(options) {}

  std::string name() const override { return "TER"; }
  std::vector<SignaturePart> settings() const override;
  size_t columns() const override { return 2; }  // fewest edits, mean length of the references
  MixedNumber score(std::span<const MixedNumber> sums) const override;

 protected:
  std::unique_ptr<RowReader> reader() const override;

 private:
  TercomOptions options_;
};

}  // namespace headshare
