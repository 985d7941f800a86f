#include "headshare/metrics/translation/ngrams.h"

#include <algorithm>
#include <bit>

namespace headshare {

void NgramMatcher::clear(size_t most) {
  const size_t wanted = std::bit_ceil(2 * most + 2);
  if (slots_.size() < wanted || ++round_ == 0) {
    slots_.assign(std::max(wanted, slots_.size()), {});
    shift_ = 64 - std::countr_zero(slots_.size());
    round_ = 1;
  }
  most_.clear();
  count_.clear();
}

// Returns the slot of `key`, or the free one where it belongs.
NgramMatcher::Slot& NgramMatcher::slot(uint64_t key) {
  size_t at = (key * 0x9E3779B97F4A7C15ULL) >> shift_;
  while (slots_[at].round == round_ && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

// `classes` holds the classes of the (n-1)-grams before, those of the n-grams after.
void NgramMatcher::add_reference(const Symbols& symbols, size_t n, Classes* classes) {
  if (symbols.size() < n) return;
  const size_t places = symbols.size() - n + 1;
  for (size_t i = 0; i < places; ++i) {
    const uint64_t key = (uint64_t{(*classes)[i]} << 32) | symbols[i + n - 1];
    Slot& found = slot(key);
    if (found.round != round_) {
      found = {key, round_, static_cast<uint32_t>(most_.size())};
      most_.push_back(0);
      count_.push_back(0);
    }
    (*classes)[i] = found.ngram;
    ++count_[found.ngram];
  }
  for (size_t i = 0; i < places; ++i) {
    const uint32_t ngram = (*classes)[i];
    most_[ngram] = std::max(most_[ngram], count_[ngram]);
    // An n-gram that comes again finds 0 here, which changes nothing.
    count_[ngram] = 0;
  }
}

int64_t NgramMatcher::count_matches(const Symbols& symbols, size_t n, Classes* classes) {
  if (symbols.size() < n) return 0;
  int64_t matches = 0;
  for (size_t i = 0; i + n <= symbols.size(); ++i) {
    uint32_t& ngram = (*classes)[i];
    if (ngram == kNone) continue;  // what it begins with is in no reference
    const Slot& found = slot((uint64_t{ngram} << 32) | symbols[i + n - 1]);
    ngram = found.round == round_ ? found.ngram : kNone;
    if (ngram != kNone && ++count_[ngram] <= most_[ngram]) ++matches;
  }
  return matches;
}

std::vector<int64_t> NgramMatcher::matches(const Symbols& candidate, std::span<const Symbols> references) {
  size_t places = candidate.size();
  classes_.resize(references.size() + 1);
  for (size_t r = 0; r < references.size(); ++r) {
    classes_[r].assign(references[r].size(), 0);
    places += references[r].size();
  }
  classes_.back().assign(candidate.size(), 0);
  std::vector<int64_t> result;
  for (size_t n = 1; n <= orders_; ++n) {
    clear(places);
    for (size_t r = 0; r < references.size(); ++r) add_reference(references[r], n, &classes_[r]);
    result.push_back(count_matches(candidate, n, &classes_.back()));
  }
  return result;
}

}  // namespace headshare
