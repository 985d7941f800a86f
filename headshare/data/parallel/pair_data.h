// This class holds sentence pairs as token ids, in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headshare/data/parallel/pair_text.h"
#include "headshare/text/interface/tokenizer.h"

namespace headshare {

// These counts tell what became of the pairs of a text.
struct PairCounts {
  int64_t read = 0;
  int64_t empty = 0;        // left out: a side without tokens
  int64_t first_empty = 0;  // the first of those, counted from 1; 0 without one
  int64_t too_long = 0;     // left out: a side with more tokens than PairLimits::longest
  int64_t too_unequal = 0;  // left out: more unequal than PairLimits::most_ratio

  int64_t kept() const { return read - empty - too_long - too_unequal; }
};

// Returns "28,985 pairs; left out: 12 longer than 256 tokens, 3 with a side more than 9 times as long as the other".
std::string counts_text(const PairCounts& counts, const PairLimits& limits);

class PairData {
 public:
  PairData() = default;  // no pairs

  // Reads all of `text`. Every side has the borders of its tokenizer (text_borders.h; the two may be one). A pair that
  // is left out for several reasons counts for the first of empty, too long, too unequal. Throws Error, besides what
  // reading throws, for a tokenizer without borders, a text that it refuses (naming the line), and when no pair is
  // kept.
  PairData(PairText* text, const Tokenizer& source, const Tokenizer& target, const PairLimits& limits);

  int64_t size() const { return static_cast<int64_t>(numbers_.size()); }
  bool empty() const { return numbers_.empty(); }

  // Returns the ids of a pair's side, the token that ends it last. 0 <= pair < size(), unchecked.
  std::span<const int32_t> source(int64_t pair) const { return side(2 * static_cast<size_t>(pair)); }
  std::span<const int32_t> target(int64_t pair) const { return side(2 * static_cast<size_t>(pair) + 1); }

  // Tells which pair of the text this one is, from 0: pairs before it may be left out.
  int64_t number(int64_t pair) const { return numbers_[static_cast<size_t>(pair)]; }

  int64_t source_tokens() const { return source_tokens_; }
  int64_t target_tokens() const { return static_cast<int64_t>(ids_.size()) - source_tokens_; }
  const PairCounts& counts() const { return counts_; }

  // Returns 32 hexadecimal digits of all ids and where sides end: equal pairs have equal fingerprints.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  std::span<const int32_t> side(size_t index) const;
  void add_side(const std::vector<int32_t>& ids);

  std::vector<int32_t> ids_;            // of all sides: source, target, source, ...
  std::vector<int64_t> offsets_ = {0};  // in ids_, of sides; one more than there are
  std::vector<int64_t> numbers_;
  int64_t source_tokens_ = 0;
  PairCounts counts_;
  std::string fingerprint_;
};

}  // namespace headshare
