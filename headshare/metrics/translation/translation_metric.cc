#include "headshare/metrics/translation/translation_metric.h"

#include "headshare/base/error.h"
#include "headshare/metrics/translation/words.h"

namespace headshare {

std::string TranslationMetric::detail(std::span<const MixedNumber>) const { return ""; }

SegmentTable TranslationMetric::measure(const Segments& system, const ReferenceTexts& references) const {
  HS_CHECK(!system.empty(), name(), " needs at least one segment");
  HS_CHECK(!references.empty(), name(), " needs at least one reference");
  for (size_t r = 0; r < references.size(); ++r) {
    HS_CHECK(references[r].size() == system.size(), name(), " compares segment by segment: the system has ",
             system.size(), ", reference ", r + 1, " has ", references[r].size());
  }
  const std::unique_ptr<RowReader> rows = reader();
  SegmentTable table{.columns = columns()};
  table.values.reserve(system.size() * table.columns);
  std::vector<std::string> others(references.size());
  for (size_t i = 0; i < system.size(); ++i) {
    for (size_t r = 0; r < references.size(); ++r) others[r] = strip_right(references[r][i]);
    const std::vector<double> row = rows->row(std::string(strip_right(system[i])), others);
    table.values.insert(table.values.end(), row.begin(), row.end());
  }
  return table;
}

std::vector<MixedNumber> column_sums(const SegmentTable& table) {
  std::vector<MixedNumber> sums(table.columns);
  for (size_t i = 0; i < table.segments(); ++i) {
    for (size_t k = 0; k < table.columns; ++k) sums[k].value += table.row(i)[k];
  }
  return sums;
}

}  // namespace headshare
