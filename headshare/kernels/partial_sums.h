// Sums gradients that several work items add to, or that are kept in float for bf16 tensors. Each item has rows of its
// own, which are added up afterwards in the order of the items. Where one item alone writes a float tensor, it writes
// there directly.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "headshare/kernels/attention_plan.h"
#include "headshare/kernels/operands.h"

namespace headshare::kernels {

template <typename T>
class PartialSums {
 public:
  // The gradients are out [B, count, rows, width]; an item adds to the rows of its own queries when `by_query`, else to
  // all.
  PartialSums(const Allocate& allocate, const std::vector<WorkItem>& items, HeadsView<T> out, const AttentionSizes& s,
              int64_t count, int64_t rows, int64_t width, bool by_query)
      : items_(items), out_(out), B_(s.B), H_(s.H), count_(count), rows_(rows), width_(width), by_query_(by_query) {
    direct_ = !Operands<T>::kPacked && items_write_apart();
    if (direct_) return;
    heads_ = 1;
    for (const WorkItem& item : items) heads_ = std::max(heads_, last(item) - first(item));
    // The items zero their sums themselves, in their own threads.
    memory_ = allocate(items.size() * static_cast<size_t>(heads_ * rows * width) * sizeof(float));
    sums_ = static_cast<float*>(memory_.get());
  }

  // Writes zeros where the item may add.
  void clear(size_t item) {
    const bool own_rows = direct_ && by_query_;
    const int64_t from = own_rows ? items_[item].first_query : 0;
    const int64_t to = own_rows ? items_[item].last_query : rows_;
    for (int64_t h = first(items_[item]); h < last(items_[item]); ++h) {
      for (int64_t r = from; r < to; ++r) std::memset(row(item, h, r), 0, static_cast<size_t>(width_) * sizeof(float));
    }
  }

  // Returns row r of a head, to be added to; the next row is stride() further.
  float* row(size_t item, int64_t head, int64_t r) {
    if constexpr (!Operands<T>::kPacked) {
      if (direct_) return out_.at(items_[item].b, head) + r * out_.row;
    }
    const int64_t mine = static_cast<int64_t>(item) * heads_ + head - first(items_[item]);
    return sums_ + (mine * rows_ + r) * width_;
  }

  int64_t stride() const { return direct_ ? out_.row : width_; }

  void add_up(const Operands<T>& ops, const Parallel& parallel) {
    if (direct_) return;
    parallel.run(B_ * count_, [&](int64_t i, int64_t) { add_up_head(ops, i / count_, i % count_); });
  }

 private:
  int64_t first(const WorkItem& item) const { return item.first_head * count_ / H_; }
  int64_t last(const WorkItem& item) const { return (item.last_head - 1) * count_ / H_ + 1; }

  bool items_write_apart() const {
    for (size_t i = 1; i < items_.size(); ++i) {
      const WorkItem& before = items_[i - 1];
      const WorkItem& item = items_[i];
      if (before.b != item.b || last(before) <= first(item)) continue;
      if (!by_query_ || before.first_head != item.first_head) return false;
    }
    return true;
  }

  void add_up_head(const Operands<T>& ops, int64_t b, int64_t head) {
    float* total = nullptr;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].b != b || head < first(items_[i]) || head >= last(items_[i])) continue;
      float* part = row(i, head, 0);
      if (total == nullptr) {
        total = part;
        continue;
      }
      for (int64_t j = 0; j < rows_ * width_; ++j) total[j] += part[j];
    }
    ops.store(total, width_, rows_, width_, out_.at(b, head), out_.row);
  }

  const std::vector<WorkItem>& items_;
  HeadsView<T> out_;
  int64_t B_, H_, count_, rows_, width_;
  int64_t heads_ = 0;
  bool by_query_;
  bool direct_ = false;
  std::shared_ptr<void> memory_;
  float* sums_ = nullptr;
};

}  // namespace headshare::kernels
