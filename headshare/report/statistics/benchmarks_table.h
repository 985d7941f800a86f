// Makes the first table of the MHE paper: what the same encoders reached on several benchmarks, side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/report/statistics/variant_rows.h"

namespace headshare {

// This is one variant with its row on each benchmark, or null where it was not fine-tuned.
struct BenchmarksRow {
  std::string variant;
  int64_t attention_parameters = 0;
  std::vector<const VariantRow*> on;
};

class BenchmarksTable {
 public:
  // The table takes the benchmarks among `all`, which must outlive it.
  explicit BenchmarksTable(const std::vector<Results>& all);

  // Tells whether there are two benchmarks or more, of encoders with the same attention parameters variant by variant.
  bool is_one() const { return is_one_; }

  const std::vector<const Results*>& benchmarks() const { return benchmarks_; }
  const std::vector<BenchmarksRow>& rows() const { return rows_; }  // in the order in which variants first come

  // Tells whether a row has the best mean of the finished variants on a benchmark.
  bool is_best(size_t row, size_t benchmark) const;

 private:
  void add(const VariantRow& row, size_t benchmark);

  std::vector<const Results*> benchmarks_;
  std::vector<std::vector<VariantRow>> of_benchmark_;
  std::vector<BenchmarksRow> rows_;
  bool is_one_ = true;
};

// Returns mean score, PRR and PEoP of a variant on a benchmark, as "71.4", "98.9", "0.12"; "-" where there is none.
std::vector<std::string> benchmark_texts(const VariantRow* row);

}  // namespace headshare
