#include "headshare/metrics/translation/bleu.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/metrics/translation/ngrams.h"
#include "headshare/metrics/translation/words.h"
#include "headshare/text/unicode/lower_case.h"

namespace headshare {
namespace {

// Returns the reference length nearest to `length`; the shorter of two.
size_t closest_length(size_t length, std::span<const Symbols> references) {
  size_t closest = references[0].size();
  const auto distance = [length](size_t other) { return other > length ? other - length : length - other; };
  for (const Symbols& one : references) {
    const size_t here = one.size();
    if (distance(here) < distance(closest) || (distance(here) == distance(closest) && here < closest)) closest = here;
  }
  return closest;
}

// Returns sacreBLEU's logarithm: of 0 it is low enough for a score of 0.
double floored_log(MixedNumber x) { return x.value == 0 ? -9999999999.0 : std::log(x.value); }

class BleuReader : public RowReader {
 public:
  explicit BleuReader(const BleuOptions& options) : options_(options), matcher_(Bleu::kOrders) {}

  std::vector<double> row(const std::string& segment, std::span<const std::string> references) override {
    const Symbols own = words(segment);
    others_.clear();
    for (const std::string& one : references) others_.push_back(words(one));
    std::vector<double> row = {static_cast<double>(own.size()),
                               static_cast<double>(closest_length(own.size(), others_))};
    for (const int64_t count : matcher_.matches(own, others_)) row.push_back(static_cast<double>(count));
    for (size_t n = 1; n <= Bleu::kOrders; ++n) {
      row.push_back(own.size() < n ? 0 : static_cast<double>(own.size() - n + 1));
    }
    return row;
  }

 private:
  Symbols words(const std::string& text) {
    return numbers_.numbers(tokenize(options_.tokenizer, options_.lowercase ? lower_case(text) : text));
  }

  BleuOptions options_;
  NgramMatcher matcher_;
  WordNumbers numbers_;
  std::vector<Symbols> others_;
};

}  // namespace

std::string smoothing_name(BleuSmoothing smoothing) {
  switch (smoothing) {
    case BleuSmoothing::kExp:
      return "exp";
    case BleuSmoothing::kFloor:
      return "floor";
    case BleuSmoothing::kAddK:
      return "add-k";
    case BleuSmoothing::kNone:
      return "none";
  }
  return "";
}

Bleu::Bleu(const BleuOptions& options) : options_(options) {
  if (!options.smooth_value) return;
  HS_CHECK(options.smoothing == BleuSmoothing::kFloor || options.smoothing == BleuSmoothing::kAddK,
           "a smoothing value is for floor and add-k; ", smoothing_name(options.smoothing), " has none");
  HS_CHECK(std::isfinite(*options.smooth_value) && *options.smooth_value >= 0,
           "a smoothing value must be a number from 0, not ", *options.smooth_value);
}

double Bleu::smooth_value() const {
  return options_.smooth_value.value_or(options_.smoothing == BleuSmoothing::kFloor ? 0.1 : 1);
}

std::vector<SignaturePart> Bleu::settings() const {
  std::string smoothing = smoothing_name(options_.smoothing);
  if (options_.smoothing == BleuSmoothing::kFloor || options_.smoothing == BleuSmoothing::kAddK) {
    smoothing += "[" + format_fixed(smooth_value(), 2) + "]";
  }
  return {{"case", options_.lowercase ? "lc" : "mixed"},
          {"eff", options_.effective_order ? "yes" : "no"},
          {"tok", tokenizer_name(options_.tokenizer)},
          {"smooth", smoothing}};
}

// Returns the precision of an order without a match.
MixedNumber Bleu::smoothed(MixedNumber total, double* halving) const {
  if (options_.smoothing == BleuSmoothing::kExp) {
    *halving *= 2;
    return MixedNumber(100) / (MixedNumber(*halving) * total);
  }
  if (options_.smoothing == BleuSmoothing::kFloor) return MixedNumber(100 * smooth_value()) / total;
  return 0;
}

// `sums` has the two lengths, matches by order, n-grams by order.
BleuParts Bleu::parts(std::span<const MixedNumber> sums) const {
  BleuParts result{.precisions = std::vector<MixedNumber>(kOrders),
                   .system_length = static_cast<int64_t>(sums[0].value),
                   .reference_length = static_cast<int64_t>(sums[1].value)};
  const auto own = static_cast<double>(result.system_length);
  const auto other = static_cast<double>(result.reference_length);
  if (own < other) result.brevity_penalty = own > 0 ? std::exp(1 - other / own) : 0;
  const auto correct = sums.subspan(2, kOrders);
  if (std::none_of(correct.begin(), correct.end(), [](MixedNumber one) { return one.value != 0; })) return result;
  double halving = 1;
  size_t orders = kOrders;
  for (size_t n = 0; n < kOrders; ++n) {
    const MixedNumber more = options_.smoothing == BleuSmoothing::kAddK && n > 0 ? smooth_value() : 0;
    const MixedNumber matches = correct[n] + more;
    const MixedNumber total = sums[2 + kOrders + n] + more;
    if (total.value == 0) break;
    if (options_.effective_order) orders = n + 1;
    result.precisions[n] = matches.value == 0 ? smoothed(total, &halving) : MixedNumber(100) * matches / total;
  }
  double logs = 0;
  for (size_t n = 0; n < orders; ++n) logs += floored_log(result.precisions[n]);
  result.score = result.brevity_penalty * std::exp(logs / static_cast<double>(orders));
  return result;
}

std::string Bleu::detail(std::span<const MixedNumber> sums) const {
  const BleuParts all = parts(sums);
  std::string text;
  for (const MixedNumber& one : all.precisions) text += (text.empty() ? "" : "/") + format_fixed(one.value, 1);
  const double ratio = all.reference_length == 0
                           ? 0
                           : static_cast<double>(all.system_length) / static_cast<double>(all.reference_length);
  return join_text(text, " (BP = ", format_fixed(all.brevity_penalty, 3), " ratio = ", format_fixed(ratio, 3),
                   " hyp_len = ", all.system_length, " ref_len = ", all.reference_length, ")");
}

std::unique_ptr<RowReader> Bleu::reader() const { return std::make_unique<BleuReader>(options_); }

}  // namespace headshare
