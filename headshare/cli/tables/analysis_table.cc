#include "headshare/cli/tables/analysis_table.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/terminal/table.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/report/analysis/analysis_wording.h"

namespace headshare {
namespace {

// Returns "24 to 60 of 64".
std::string widths_text(const std::vector<Spectrum>& heads) {
  int64_t least = heads.front().width_for(kEnergyShare), most = least;
  for (const Spectrum& one : heads) {
    least = std::min(least, one.width_for(kEnergyShare));
    most = std::max(most, one.width_for(kEnergyShare));
  }
  return join_text(least, least == most ? "" : join_text(" to ", most), " of ", heads.front().dimensions);
}

std::string layer_table(const HeadAnalysis& analysis) {
  std::vector<Column> columns = {{"layer", Align::kLeft}, {"dimensions, heads"}, {"joint"}, {"stacked"},
                                 {"mean cosine"},         {"most alike heads"}};
  if (analysis.has_text()) columns.insert(columns.end(), {{"mean attention"}, {"most alike attention"}});
  TextTable table(columns);
  for (const LayerAnalysis& layer : analysis.layer) {
    std::vector<std::string> cells = {layer.layer,
                                      widths_text(layer.heads),
                                      width_text(layer.joint),
                                      width_text(layer.stacked),
                                      similarity_text(mean_similarity(layer.weights)),
                                      pair_text(most_alike(layer.weights))};
    if (analysis.has_text()) {
      cells.push_back(similarity_text(mean_similarity(layer.maps)));
      cells.push_back(pair_text(most_alike(layer.maps)));
    }
    table.add(std::move(cells));
  }
  return table.text(terminal_width(Stream::kOut));
}

std::string mean_error_text(std::optional<double> error) { return error ? error_text(*error) : "-"; }

std::vector<std::string> conversion_cells(const HeadAnalysis& analysis, const ConversionAnalysis& row) {
  const ConversionAnalysis& before = analysis.before;
  const bool converted = &row != &before;
  const auto change = [&](double after, double of, const std::string& own) {
    return converted ? change_text(after, of) : own;
  };
  const auto count = [&](int64_t after, int64_t of) {
    return change(static_cast<double>(after), static_cast<double>(of), format_count(static_cast<double>(of)));
  };
  std::vector<std::string> cells = {row_name(analysis, row), mean_error_text(row.scores()),
                                    mean_error_text(row.values())};
  if (analysis.has_text()) cells.push_back(mean_error_text(row.output()));
  if (analysis.decodes()) cells.push_back(count(row.size.cache_bytes_per_token, before.size.cache_bytes_per_token));
  cells.push_back(count(row.size.attention_parameters, before.size.attention_parameters));
  cells.push_back(count(row.size.total_parameters, before.size.total_parameters));
  cells.push_back(change(row.milliseconds.value_or(0), before.milliseconds.value_or(0),
                         milliseconds_text(before.milliseconds) + " ms"));
  return cells;
}

std::string conversion_table(const HeadAnalysis& analysis) {
  std::vector<Column> columns = {{"conversion", Align::kLeft, /*wraps=*/false}, {"error of scores"}, {"of values"}};
  if (analysis.has_text()) columns.push_back({"change of output"});
  if (analysis.decodes()) columns.push_back({"cache bytes per token"});
  columns.insert(columns.end(), {{"attention parameters"}, {"parameters"}, {time_heading(analysis)}});
  TextTable table(columns);
  table.add(conversion_cells(analysis, analysis.before));
  for (const ConversionAnalysis& row : analysis.conversions) {
    if (row.impossible.empty()) {
      table.add(conversion_cells(analysis, row));
    } else {
      table.add_spanning(row.name, "not possible: " + row.impossible);
    }
  }
  return table.text(terminal_width(Stream::kOut));
}

}  // namespace

std::string analysis_text(const HeadAnalysis& analysis) {
  const auto paragraph = [](const std::string& line) { return wrap(line, terminal_width(Stream::kOut), 0) + "\n"; };
  std::string text = bold(subject_text(analysis), Stream::kOut) + "\n\n" + paragraph(finding_text(analysis)) + "\n" +
                     (analysis.has_spectra() ? layer_table(analysis) + "\n" : "") + conversion_table(analysis) + "\n";
  for (const std::string& line : explanations(analysis)) text += paragraph(line);
  return text;
}

}  // namespace headshare
