#include "headshare/cli/tables/finetune_table.h"

#include "headshare/cli/terminal/table.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/metrics/statistics.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

std::string cell(double value) { return score_value_text(value, 4); }

void add_rows(const TaskResult& result, TextTable* table) {
  const auto& parts = result.models().front().parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t k = 0; k < parts[i].scores.size(); ++k) {
      const std::string& name = parts[i].scores[k].name;
      if (name.ends_with("total")) continue;
      const std::vector<double> values = result.values(i, k);
      const bool first = k == 0;
      std::vector<std::string> cells = {first && i == 0 ? result.task : "", first ? parts[i].part : "", name};
      if (all_finite(values)) {
        const Summary found = summarize(values);
        for (const std::string& one :
             {cell(found.mean), found.deviation ? "±" + cell(*found.deviation) : std::string("-"), cell(found.median),
              cell(found.max)}) {
          cells.push_back(one);
        }
      } else {
        cells.insert(cells.end(), {"none", "-", "-", "-"});
      }
      cells.push_back(first && i == 0 ? join_text(result.learning_rate()) : "");
      table->add(std::move(cells));
    }
  }
}

}  // namespace

std::string results_text(std::vector<TaskResult> results) {
  std::erase_if(results, [](const TaskResult& result) { return result.models().empty(); });
  if (results.empty()) return "";
  TextTable table({{"task", Align::kLeft},
                   {"part", Align::kLeft},
                   {"score", Align::kLeft},
                   {"mean"},
                   {"deviation"},
                   {"median"},
                   {"best"},
                   {"learning rate"}});
  for (const TaskResult& result : results) add_rows(result, &table);
  const size_t seeds = results.front().models().size();
  return table.text(terminal_width(Stream::kOut)) +
         join_text("Over ", seeds, seeds == 1 ? " seed" : " seeds",
                   ", each with the epoch that is best on the validation part.\n");
}

}  // namespace headshare
