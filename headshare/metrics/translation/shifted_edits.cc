#include "headshare/metrics/translation/shifted_edits.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>

#include "headshare/metrics/translation/edit_table.h"

namespace headshare {
namespace {

using Words = EditTable::Words;

constexpr int64_t kLongestRun = 10;
constexpr int64_t kFarthestShift = 50;
constexpr int64_t kMostCandidates = 1000;

// Moves words[start, start + length) to before words[target]; where that is within the run, the run begins there
// afterwards.
Words shift(Words words, int64_t start, int64_t length, int64_t target) {
  const auto size = static_cast<int64_t>(words.size());
  const auto begin = words.begin();
  if (target < start) {
    std::rotate(begin + target, begin + start, begin + start + length);
  } else {
    const int64_t end = target > start + length ? target : std::min(size, target + length);
    std::rotate(begin + start, begin + start + length, begin + end);
  }
  return words;
}

bool any_wrong(const std::vector<uint8_t>& wrong, int64_t start, int64_t length) {
  return std::any_of(wrong.begin() + start, wrong.begin() + start + length, [](uint8_t one) { return one != 0; });
}

class ShiftSearch {
 public:
  ShiftSearch(const Words& words, const Words& reference)
      : words_(words), reference_(reference), table_(reference, words.size()) {}

  int64_t edits() {
    for (int64_t shifts = 0;; ++shifts) {
      distance_ = table_.set_base(words_);
      alignment_ = table_.base_alignment();
      best_.reset();
      try_runs();
      if (candidates_ >= kMostCandidates || !best_ || best_->gain <= 0) return shifts + distance_;
      words_ = shift(words_, best_->start, best_->length, best_->target);
    }
  }

 private:
  struct Shift {
    int64_t gain;
    int64_t length;
    int64_t start;
    int64_t target;
  };

  // The greater gain comes first, then the longer run, then the earlier, then the earlier target.
  static auto rank(const Shift& one) { return std::tuple(one.gain, one.length, -one.start, -one.target); }

  // Tries all runs that both sides have, by their places; those that begin with another run are runs as well.
  void try_runs() {
    const auto count = static_cast<int64_t>(words_.size());
    const auto others = static_cast<int64_t>(reference_.size());
    for (int64_t start = 0; start < count; ++start) {
      const int64_t first = std::max<int64_t>(0, start - kFarthestShift);
      const int64_t last = std::min(others - 1, start + kFarthestShift);
      for (int64_t place = first; place <= last; ++place) {
        const int64_t most = std::min({kLongestRun, count - start, others - place});
        for (int64_t length = 1; length <= most && same(start + length - 1, place + length - 1); ++length) {
          if (!worth_trying(start, place, length)) continue;
          try_targets(start, place, length);
          if (candidates_ >= kMostCandidates) return;
        }
      }
    }
  }

  bool same(int64_t word, int64_t place) const {
    return words_[static_cast<size_t>(word)] == reference_[static_cast<size_t>(place)];
  }

  bool worth_trying(int64_t start, int64_t place, int64_t length) const {
    if (!any_wrong(alignment_.word_wrong, start, length)) return false;
    if (!any_wrong(alignment_.reference_wrong, place, length)) return false;
    const int64_t stands_at = alignment_.word_of[static_cast<size_t>(place)];
    return stands_at < start || stands_at >= start + length;
  }

  // Tries the places behind the words that stand with the reference words at and inside the run, and with the one
  // before it.
  void try_targets(int64_t start, int64_t place, int64_t length) {
    int64_t before = -1;
    for (int64_t at = place - 1; at < place + length; ++at) {
      const int64_t target = at < 0 ? 0 : alignment_.word_of[static_cast<size_t>(at)] + 1;
      if (target == before) continue;
      before = target;
      const Words shifted = shift(words_, start, length, target);
      const int64_t gain = distance_ - table_.distance(shifted, static_cast<size_t>(std::min(start, target)));
      const Shift candidate{gain, length, start, target};
      ++candidates_;
      if (!best_ || rank(candidate) > rank(*best_)) best_ = candidate;
    }
  }

  Words words_;
  const Words& reference_;
  EditTable table_;
  int64_t distance_ = 0;
  WordAlignment alignment_;
  std::optional<Shift> best_;
  int64_t candidates_ = 0;  // of all rounds
};

}  // namespace

int64_t shifted_edits(const std::vector<uint32_t>& words, const std::vector<uint32_t>& reference) {
  if (words.empty() || reference.empty()) return static_cast<int64_t>(words.size() + reference.size());
  return ShiftSearch(words, reference).edits();
}

}  // namespace headshare
