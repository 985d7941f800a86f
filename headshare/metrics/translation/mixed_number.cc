#include "headshare/metrics/translation/mixed_number.h"

#include <algorithm>
#include <cmath>

namespace headshare {
namespace {

// Returns numpy's sum of contiguous numbers: eight running sums in blocks of up to 128, halves above that. It is in T
// throughout.
template <class T>
T pairwise_sum(std::span<const T> x) {
  constexpr size_t kBlock = 128;
  if (x.size() > kBlock) {
    const size_t half = x.size() / 2 / 8 * 8;
    return pairwise_sum(x.first(half)) + pairwise_sum(x.subspan(half));
  }
  T sum = 0;
  size_t i = 0;
  if (x.size() >= 8) {
    T part[8];
    std::copy_n(x.begin(), 8, part);
    for (i = 8; i + 8 <= x.size(); i += 8) {
      for (size_t k = 0; k < 8; ++k) part[k] += x[i + k];
    }
    sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
  }
  for (; i < x.size(); ++i) sum += x[i];
  return sum;
}

}  // namespace

MixedArray::MixedArray(std::span<const MixedNumber> numbers) {
  single_ = std::all_of(numbers.begin(), numbers.end(), [](const MixedNumber& one) { return one.single; });
  for (const MixedNumber& one : numbers) values_.push_back(one.value);
}

MixedNumber MixedArray::mean() const {
  const auto count = static_cast<double>(values_.size());
  if (!single_) return pairwise_sum<double>(values_) / count;
  const std::vector<float> singles(values_.begin(), values_.end());
  return MixedNumber::of_float(static_cast<float>(double{pairwise_sum<float>(singles)} / count));
}

MixedArray MixedArray::distances(const MixedArray& to) const {
  MixedArray result;
  result.single_ = single_ && to.single_;
  for (size_t i = 0; i < values_.size(); ++i) {
    result.values_.push_back(std::abs(result.round(values_[i] - to.values_[i])));
  }
  return result;
}

size_t MixedArray::count_above(double middle, double bound) const {
  const double rounded = round(bound);
  const auto above = [&](double value) { return round(value - middle) > rounded; };
  return static_cast<size_t>(std::count_if(values_.begin(), values_.end(), above));
}

}  // namespace headshare
