// Finds which n-grams of a sentence its references have too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headshare {

using Symbols = std::vector<uint32_t>;  // words by number, or code points

// Counts one sentence at a time; keeps its memory for the next.
class NgramMatcher {
 public:
  explicit NgramMatcher(size_t orders) : orders_(orders) {}

  // Returns, for n = 1 .. orders, how many n-grams of `candidate` the references have too. An n-gram counts at most as
  // often as it is in the reference that has it most often.
  std::vector<int64_t> matches(const Symbols& candidate, std::span<const Symbols> references);

 private:
  // The n-grams that begin at each place have a class, equal for equal n-grams; kNone where no reference has one.
  using Classes = std::vector<uint32_t>;
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Slot {
    uint64_t key = 0;
    uint32_t round = 0;  // the slot is free unless this is the table's
    uint32_t ngram = 0;
  };

  void clear(size_t most);
  Slot& slot(uint64_t key);
  void add_reference(const Symbols& symbols, size_t n, Classes* classes);
  int64_t count_matches(const Symbols& symbols, size_t n, Classes* classes);

  size_t orders_;
  std::vector<Slot> slots_;  // a power of two
  int shift_ = 64;
  uint32_t round_ = 0;
  std::vector<uint32_t> most_;   // by class: most occurrences in a reference
  std::vector<uint32_t> count_;  // by class: in the present text
  std::vector<Classes> classes_;
};

}  // namespace headshare
