#include "headshare/metrics/translation/ter.h"

#include <algorithm>

#include "headshare/metrics/translation/shifted_edits.h"
#include "headshare/metrics/translation/words.h"

namespace headshare {
namespace {

std::string yes_or_no(bool value) { return value ? "yes" : "no"; }

class TerReader : public RowReader {
 public:
  explicit TerReader(const TercomOptions& options) : options_(options) {}

  std::vector<double> row(const std::string& segment, std::span<const std::string> references) override {
    const std::vector<uint32_t> own = numbers_.numbers(tercom_words(options_, segment));
    int64_t fewest = INT64_MAX;
    size_t length = 0;
    for (const std::string& one : references) {
      const std::vector<uint32_t> other = numbers_.numbers(reference_words(one));
      fewest = std::min(fewest, shifted_edits(own, other));
      length += other.size();
    }
    return {static_cast<double>(fewest), static_cast<double>(length) / static_cast<double>(references.size())};
  }

 private:
  // sacreBLEU normalizes references twice, which changes some: "a..1" becomes "a . .1" and then "a . . 1".
  std::string reference_words(const std::string& line) const {
    std::string once = tercom_words(options_, line);
    if (!options_.normalized) return once;
    std::string joined;
    for (const std::string_view word : split_words(once)) {
      if (!joined.empty()) joined += ' ';
      joined += word;
    }
    return tercom_words(options_, joined);
  }

  TercomOptions options_;
  WordNumbers numbers_;
};

}  // namespace

std::vector<SignaturePart> Ter::settings() const {
  return {{"case", options_.case_sensitive ? "mixed" : "lc"},
          {"tok", "tercom"},
          {"norm", yes_or_no(options_.normalized)},
          {"punct", yes_or_no(!options_.no_punctuation)},
          {"asian", yes_or_no(options_.asian_support)}};
}

MixedNumber Ter::score(std::span<const MixedNumber> sums) const {
  if (sums[1].value > 0) return MixedNumber(100) * (sums[0] / sums[1]);
  return sums[0].value > 0 ? 100 : 0;  // without any word in the references
}

std::unique_ptr<RowReader> Ter::reader() const { return std::make_unique<TerReader>(options_); }

}  // namespace headshare
