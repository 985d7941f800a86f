// Computes Levenshtein distances of word sequences to one reference, near the diagonal only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headshare {

// An alignment says how the words of a sequence and of its reference stand together after an edit distance.
struct WordAlignment {
  std::vector<int64_t> word_of = {};          // by reference word: the word it stands with, or behind (-1: none)
  std::vector<uint8_t> reference_wrong = {};  // by reference word: 1 where it is not there
  std::vector<uint8_t> word_wrong = {};       // by word: 1 where it does not stand with its equal
};

class EditTable {
 public:
  using Words = std::vector<uint32_t>;

  // The table is for sequences of `length` words. Neither side is empty.
  EditTable(const Words& reference, size_t length);

  // Makes `words` the base that others are compared with; returns its distance.
  int32_t set_base(const Words& words);
  // Returns the distance of a sequence whose first `same` words (fewer than `length`) are the base's.
  int32_t distance(const Words& words, size_t same);
  // Returns the alignment of the base. Where edits cost the same, words stand together, then words are left out, then
  // inserted.
  WordAlignment base_alignment() const;

 private:
  enum class Edit : uint8_t { kNone, kKeep, kReplace, kDelete, kInsert };

  // These columns of a row are computed; `offset` is where they are kept.
  struct Band {
    size_t begin = 0;
    size_t end = 0;
    size_t offset = 0;
  };

  void fill_row(uint32_t word, size_t row);  // from previous_ into current_
  void keep_row(uint32_t word, size_t row);
  Edit edit(uint32_t word, size_t column) const;
  size_t at(size_t row, size_t column) const { return bands_[row].offset + column - bands_[row].begin; }

  const Words& reference_;
  size_t length_;
  std::vector<Band> bands_;     // by row: by number of words
  std::vector<int32_t> costs_;  // of the base
  std::vector<Edit> edits_;
  // These are two whole rows, one column to the right: before the first there is none.
  std::vector<int32_t> previous_;
  std::vector<int32_t> current_;
};

}  // namespace headshare
