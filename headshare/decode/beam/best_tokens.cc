#include "headshare/decode/beam/best_tokens.h"

#include <algorithm>
#include <cmath>

namespace headshare {
namespace {

constexpr int64_t kBlock = 64;

// Keeps the best continuations so far, by falling sum.
class Leaders {
 public:
  explicit Leaders(int64_t count) : count_(static_cast<size_t>(count)) { best_.reserve(count_ + 1); }

  // A continuation enters only if its sum is larger: an equal one that came earlier stays before it.
  float bound() const { return bound_; }

  void add(const Continuation& one) {
    const auto before = [](float sum, const Continuation& other) { return sum > other.sum; };
    best_.insert(std::upper_bound(best_.begin(), best_.end(), one.sum, before), one);
    if (best_.size() > count_) best_.pop_back();
    if (best_.size() == count_) bound_ = best_.back().sum;
  }

  std::vector<Continuation> take() { return std::move(best_); }

 private:
  size_t count_;
  float bound_ = -INFINITY;
  std::vector<Continuation> best_;
};

// Almost every block has no sum above the bound. This loop becomes vector code.
bool any_above(const float* values, float sum, float bound) {
  int32_t above = 0;
  for (int64_t i = 0; i < kBlock; ++i) above |= values[i] + sum > bound ? 1 : 0;
  return above != 0;
}

void add_range(const ScoredRow& row, int64_t index, int64_t begin, int64_t end, Leaders* leaders) {
  for (int64_t token = begin; token < end; ++token) {
    const float sum = row.log_probabilities[token] + row.sum;
    if (sum > leaders->bound()) leaders->add({.row = index, .token = static_cast<int32_t>(token), .sum = sum});
  }
}

}  // namespace

std::vector<Continuation> best_tokens(std::span<const ScoredRow> rows, int64_t vocabulary, int64_t count) {
  Leaders leaders(count);
  for (size_t index = 0; index < rows.size(); ++index) {
    const ScoredRow& row = rows[index];
    const auto number = static_cast<int64_t>(index);
    int64_t token = 0;
    for (; token + kBlock <= vocabulary; token += kBlock) {
      if (!any_above(row.log_probabilities + token, row.sum, leaders.bound())) continue;
      add_range(row, number, token, token + kBlock, &leaders);
    }
    add_range(row, number, token, vocabulary, &leaders);
  }
  return leaders.take();
}

}  // namespace headshare
