#include "headshare/metrics/translation/edit_table.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace headshare {
namespace {

constexpr int32_t kOutside = 1 << 29;  // more than any distance
constexpr int64_t kBeam = 25;

}  // namespace

EditTable::EditTable(const Words& reference, size_t length)
    : reference_(reference), length_(length), bands_(length + 1) {
  const auto columns = static_cast<int64_t>(reference.size()) + 1;
  const double ratio = static_cast<double>(reference.size()) / static_cast<double>(length);
  // With very unequal lengths, each row must still meet the one before.
  const int64_t beam = ratio / 2 > static_cast<double>(kBeam)
                           ? static_cast<int64_t>(std::ceil(ratio / 2 + static_cast<double>(kBeam)))
                           : kBeam;
  bands_[0] = {0, static_cast<size_t>(columns), 0};
  size_t cells = bands_[0].end;
  for (size_t row = 1; row <= length; ++row) {
    const auto diagonal = static_cast<int64_t>(std::floor(static_cast<double>(row) * ratio));
    const int64_t end = row == length ? columns : std::min(columns, diagonal + beam);
    bands_[row] = {static_cast<size_t>(std::max<int64_t>(0, diagonal - beam)), static_cast<size_t>(end), cells};
    cells += bands_[row].end - bands_[row].begin;
  }
  costs_.resize(cells);
  edits_.resize(cells, Edit::kInsert);  // as all of row 0 are
  for (size_t column = 0; column < bands_[0].end; ++column) costs_[column] = static_cast<int32_t>(column);
  previous_.resize(reference.size() + 2, kOutside);
  current_ = previous_;
}

void EditTable::fill_row(uint32_t word, size_t row) {
  const Band& above = bands_[row - 1];
  const Band& band = bands_[row];
  int32_t* const up = previous_.data() + 1;
  int32_t* const here = current_.data() + 1;
  if (above.begin > 0) up[above.begin - 1] = kOutside;
  std::fill(up + above.end, up + std::max(above.end, band.end), kOutside);
  if (band.begin > 0) here[band.begin - 1] = kOutside;
  if (band.begin == 0) here[0] = up[0] + 1;
  int32_t left = here[band.begin == 0 ? 0 : band.begin - 1];
  for (size_t column = std::max<size_t>(band.begin, 1); column < band.end; ++column) {
    const int32_t replaced = up[column - 1] + (reference_[column - 1] == word ? 0 : 1);
    left = std::min({replaced, up[column] + 1, left + 1, kOutside});
    here[column] = left;
  }
}

// Returns which edit led to a cell of current_: of equal ones the first that is tried.
EditTable::Edit EditTable::edit(uint32_t word, size_t column) const {
  const int32_t* const up = previous_.data() + 1;
  const int32_t* const here = current_.data() + 1;
  const int32_t cost = here[column];
  if (cost >= kOutside) return Edit::kNone;
  if (column > 0) {
    const bool same = reference_[column - 1] == word;
    if (up[column - 1] + (same ? 0 : 1) == cost) return same ? Edit::kKeep : Edit::kReplace;
  }
  return up[column] + 1 == cost ? Edit::kDelete : Edit::kInsert;
}

// Keeps current_ as the base's row.
void EditTable::keep_row(uint32_t word, size_t row) {
  for (size_t column = bands_[row].begin; column < bands_[row].end; ++column) {
    costs_[at(row, column)] = current_[column + 1];
    edits_[at(row, column)] = edit(word, column);
  }
}

int32_t EditTable::set_base(const Words& words) {
  std::copy_n(costs_.begin(), bands_[0].end, previous_.begin() + 1);
  for (size_t row = 1; row <= length_; ++row) {
    fill_row(words[row - 1], row);
    keep_row(words[row - 1], row);
    std::swap(previous_, current_);
  }
  return previous_.back();
}

int32_t EditTable::distance(const Words& words, size_t same) {
  const Band& band = bands_[same];
  std::copy_n(costs_.begin() + static_cast<ptrdiff_t>(band.offset), band.end - band.begin,
              previous_.begin() + 1 + static_cast<ptrdiff_t>(band.begin));
  for (size_t row = same + 1; row <= length_; ++row) {
    fill_row(words[row - 1], row);
    std::swap(previous_, current_);
  }
  return previous_.back();
}

WordAlignment EditTable::base_alignment() const {
  WordAlignment result{.word_of = std::vector<int64_t>(reference_.size()),
                       .reference_wrong = std::vector<uint8_t>(reference_.size(), 1),
                       .word_wrong = std::vector<uint8_t>(length_, 1)};
  size_t row = length_;
  size_t column = reference_.size();
  while (row > 0 || column > 0) {
    switch (edits_[at(row, column)]) {
      case Edit::kKeep:
        result.reference_wrong[column - 1] = result.word_wrong[row - 1] = 0;
        [[fallthrough]];
      case Edit::kReplace:
        result.word_of[--column] = static_cast<int64_t>(--row);
        break;
      case Edit::kInsert:
        result.word_of[--column] = static_cast<int64_t>(row) - 1;
        break;
      case Edit::kDelete:
        --row;
        break;
      case Edit::kNone:  // neighbouring bands overlap, so that there is always a way
        throw std::logic_error("an edit distance without a way to it");
    }
  }
  return result;
}

}  // namespace headshare
