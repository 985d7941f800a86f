#include "headshare/data/parallel/pair_data.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/data/hash.h"
#include "headshare/text/text_borders.h"

namespace headshare {
namespace {

// Writes 29000 as "29,000".
std::string grouped(int64_t count) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::vector<int32_t> encoded(const Tokenizer& tokenizer, const std::string& sentence, const std::string& where) {
  try {
    return tokenizer.encode(sentence);
  } catch (const Error& error) {
    throw Error(where + ": " + error.what());
  }
}

// Returns the count of the reason to leave a pair out; nullptr to keep it. Lengths are without the `borders` tokens
// around.
int64_t* reason(size_t source, size_t target, int64_t borders, const PairLimits& limits, PairCounts* counts) {
  const auto [shorter, longer] = std::minmax(source, target);
  if (shorter == 0 && !limits.keep_empty) return &counts->empty;
  if (limits.longest && static_cast<int64_t>(longer) + borders > *limits.longest) return &counts->too_long;
  const bool unequal =
      limits.most_ratio && static_cast<double>(longer) > *limits.most_ratio * static_cast<double>(shorter);
  return unequal && shorter > 0 ? &counts->too_unequal : nullptr;
}

}  // namespace

std::string counts_text(const PairCounts& counts, const PairLimits& limits) {
  std::string text = grouped(counts.kept()) + (counts.kept() == 1 ? " pair" : " pairs");
  std::vector<std::string> reasons;
  if (counts.empty > 0) {
    const std::string first = counts.first_empty > 0 ? " (first: pair " + grouped(counts.first_empty) + ")" : "";
    reasons.push_back(grouped(counts.empty) + " with an empty side" + first);
  }
  if (counts.too_long > 0) {
    reasons.push_back(join_text(grouped(counts.too_long), " longer than ", limits.longest.value_or(0), " tokens"));
  }
  if (counts.too_unequal > 0) {
    reasons.push_back(join_text(grouped(counts.too_unequal), " with a side more than ", limits.most_ratio.value_or(0),
                                " times as long as the other"));
  }
  for (size_t i = 0; i < reasons.size(); ++i) text += (i == 0 ? "; left out: " : ", ") + reasons[i];
  return text;
}

PairData::PairData(PairText* text, const Tokenizer& source, const Tokenizer& target, const PairLimits& limits) {
  const TextBorders around_source = text_borders(source, "sentence pairs: the source's tokenizer");
  const TextBorders around_target = target_borders(target, "sentence pairs: the target's tokenizer");
  const int64_t borders = std::max(around_source.size(), around_target.size());
  while (const std::optional<Pair> pair = text->next()) {
    const std::vector<int32_t> from = encoded(source, pair->source, text->where());
    const std::vector<int32_t> to = encoded(target, pair->target, text->where());
    const int64_t number = counts_.read++;
    if (int64_t* left_out = reason(from.size(), to.size(), borders, limits, &counts_)) {
      ++*left_out;
      if (counts_.empty == 1 && left_out == &counts_.empty) counts_.first_empty = number + 1;
      continue;
    }
    add_side(around_source.around(from));
    add_side(around_target.around(to));
    source_tokens_ += static_cast<int64_t>(from.size()) + around_source.size();
    numbers_.push_back(number);
  }
  const bool too_strict = counts_.too_long + counts_.too_unequal > 0;
  HS_CHECK(!empty(), text->name(), ": no pair is left to use: ", counts_text(counts_, limits),
           too_strict ? "; raise --max-pair-length or --max-length-ratio" : "; are these the right files?");
  ContentHash hash;
  hash.update(offsets_.data(), offsets_.size() * sizeof offsets_[0]);
  hash.update(ids_.data(), ids_.size() * sizeof ids_[0]);
  fingerprint_ = hash.hex();
}

std::span<const int32_t> PairData::side(size_t index) const {
  return std::span(ids_).subspan(static_cast<size_t>(offsets_[index]),
                                 static_cast<size_t>(offsets_[index + 1] - offsets_[index]));
}

void PairData::add_side(const std::vector<int32_t>& ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  offsets_.push_back(static_cast<int64_t>(ids_.size()));
}

}  // namespace headshare
