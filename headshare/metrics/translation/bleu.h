// Computes BLEU (Papineni et al., 2002) as sacreBLEU 2.6 does: n-grams of 1 to 4 words.
#pragma once

#include <optional>

#include "headshare/metrics/translation/tokenizer.h"
#include "headshare/metrics/translation/translation_metric.h"

namespace headshare {

// This stands for a precision of 0 (Chen and Cherry, 2014).
enum class BleuSmoothing {
  kExp,    // half as much at each further order without a match
  kFloor,  // `smooth_value` matches
  kAddK,   // `smooth_value` more matches and n-grams at every order above 1
  kNone,
};

std::string smoothing_name(BleuSmoothing smoothing);  // "exp", "floor", "add-k", "none"

struct BleuOptions {
  BleuTokenizer tokenizer = BleuTokenizer::k13a;
  bool lowercase = false;
  BleuSmoothing smoothing = BleuSmoothing::kExp;
  std::optional<double> smooth_value = {};  // 0.1 for kFloor, 1 for kAddK
  bool effective_order = false;             // orders that a short segment has no n-grams of do not count
};

// These are the parts of a score, as sacreBLEU prints them.
struct BleuParts {
  MixedNumber score = 0;                     // per cent
  std::vector<MixedNumber> precisions = {};  // per cent, by order
  double brevity_penalty = 1;
  int64_t system_length = 0;     // words
  int64_t reference_length = 0;  // words, of the references closest in length
};

class Bleu : public TranslationMetric {
 public:
  static constexpr size_t kOrders = 4;

  // Throws Error for a smooth_value where the method takes none, or that is negative or not finite.
  explicit Bleu(const BleuOptions& options);

  std::string name() const override { return "BLEU"; }
  std::vector<SignaturePart> settings() const override;
  size_t columns() const override { return 2 + 2 * kOrders; }
  MixedNumber score(std::span<const MixedNumber> sums) const override { return parts(sums).score; }
  std::string detail(std::span<const MixedNumber> sums) const override;

  BleuParts parts(std::span<const MixedNumber> sums) const;

 protected:
  std::unique_ptr<RowReader> reader() const override;

 private:
  double smooth_value() const;
  MixedNumber smoothed(MixedNumber total, double* halving) const;

  BleuOptions options_;
};

}  // namespace headshare
