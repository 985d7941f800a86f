#include "headshare/report/statistics/benchmarks_table.h"

#include <algorithm>

#include "headshare/base/strings/format.h"

namespace headshare {

BenchmarksTable::BenchmarksTable(const std::vector<Results>& all) {
  for (const Results& results : all) {
    if (!results.subject.tasks.empty()) benchmarks_.push_back(&results);
  }
  for (const Results* results : benchmarks_) of_benchmark_.push_back(summarise(*results));
  for (size_t i = 0; i < benchmarks_.size(); ++i) {
    for (const VariantRow& row : of_benchmark_[i]) add(row, i);
  }
  is_one_ = is_one_ && benchmarks_.size() >= 2;
}

void BenchmarksTable::add(const VariantRow& row, size_t benchmark) {
  auto found = std::find_if(rows_.begin(), rows_.end(), [&](const auto& one) { return one.variant == row.variant; });
  if (found == rows_.end()) {
    rows_.push_back({.variant = row.variant, .on = std::vector<const VariantRow*>(benchmarks_.size(), nullptr)});
    found = rows_.end() - 1;
  }
  if (!row.finished()) return;
  if (found->attention_parameters == 0) found->attention_parameters = row.size.attention_parameters;
  is_one_ = is_one_ && found->attention_parameters == row.size.attention_parameters;
  found->on[benchmark] = &row;
}

bool BenchmarksTable::is_best(size_t row, size_t benchmark) const {
  const VariantRow* own = rows_[row].on[benchmark];
  return own != nullptr && std::all_of(rows_.begin(), rows_.end(), [&](const BenchmarksRow& other) {
           const VariantRow* one = other.on[benchmark];
           return one == nullptr || one->best.quality.mean <= own->best.quality.mean;
         });
}

std::vector<std::string> benchmark_texts(const VariantRow* row) {
  if (row == nullptr) return {"-", "-", "-"};
  const auto text = [](const Retention& of, int digits) { return of.value ? format_fixed(*of.value, digits) : "-"; };
  return {format_fixed(row->best.quality.mean, 1), text(row->prr, 1), text(row->peop, 2)};
}

}  // namespace headshare
