#include "headshare/report/analysis/analysis_page.h"

#include <fmt/format.h>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/report/analysis/analysis_figures.h"
#include "headshare/report/analysis/analysis_wording.h"
#include "headshare/report/analysis/image_looks.h"
#include "headshare/report/html/html_figures.h"
#include "headshare/report/html/html_page.h"
#include "headshare/report/statistics/speeds.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

std::string facts_html(const HeadAnalysis& analysis) {
  const auto fact = [](const char* name, const std::string& value) {
    return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", name, escape_html(value));
  };
  return "<dl class=\"facts\">" +
         fact("Text", analysis.has_text()        ? list_text(analysis.text)
                      : analysis.refusal.empty() ? "none: weights alone count"
                                                 : "none") +
         fact("Parameters", count_text(analysis.before.size.total_parameters)) +
         fact("Of them in attention", count_text(analysis.before.size.attention_parameters)) +
         (analysis.decodes() ? fact("Cache, bytes per token", count_text(analysis.before.size.cache_bytes_per_token))
                             : "") +
         fact("Key width of all heads", count_text(analysis.full_key_width)) + "</dl>\n";
}

// Returns a number with its change against the model as it is.
HtmlCell cost_cell(const std::string& text, double after, double before) {
  HtmlCell cell = number_cell(text, after);
  if (after != before) cell.html += "<span class=\"sub\">" + number_cell(change_text(after, before)).html + "</span>";
  return cell;
}

HtmlCell error_cell(std::optional<double> error) {
  return error ? number_cell(error_text(*error), *error) : number_cell("-");
}

std::vector<HtmlCell> conversion_cells(const HeadAnalysis& analysis, const ConversionAnalysis& row) {
  const ConversionAnalysis& before = analysis.before;
  HtmlCell name{SvgPlot::key(scheme_style(row.scheme).value_or(SeriesStyle{})) + escape_html(row_name(analysis, row))};
  if (!row.command.empty()) name.html += "<span class=\"sub\">" + escape_html(row.command) + "</span>";
  std::vector<HtmlCell> cells = {name, error_cell(row.scores()), error_cell(row.values())};
  if (analysis.has_text()) cells.push_back(error_cell(row.output()));
  const auto count = [&](int64_t after, int64_t of) {
    cells.push_back(cost_cell(count_text(after), static_cast<double>(after), static_cast<double>(of)));
  };
  if (analysis.decodes()) count(row.size.cache_bytes_per_token, before.size.cache_bytes_per_token);
  count(row.size.attention_parameters, before.size.attention_parameters);
  count(row.size.total_parameters, before.size.total_parameters);
  cells.push_back(
      cost_cell(milliseconds_text(row.milliseconds), row.milliseconds.value_or(0), before.milliseconds.value_or(0)));
  if (analysis.busy) {
    cells.back().html =
        "<span class=\"busy\">" + cells.back().html + "</span><span class=\"sub\">" + kBusyMachine + "</span>";
  }
  return cells;
}

std::string conversion_table(const HeadAnalysis& analysis) {
  std::vector<HtmlTable::Heading> headings = {
      {.text = "Conversion", .number = false}, {.text = "Error of scores"}, {.text = "Error of values"}};
  if (analysis.has_text()) headings.push_back({.text = "Change of output"});
  if (analysis.decodes()) headings.push_back({.text = "Cache", .number = true, .unit = "bytes per token"});
  headings.push_back({.text = "Attention parameters"});
  headings.push_back({.text = "Parameters"});
  headings.push_back({.text = capitalised(time_heading(analysis)), .number = true, .unit = "ms, one layer"});
  HtmlTable table(headings);
  table.add(conversion_cells(analysis, analysis.before));
  for (const ConversionAnalysis* row : possible(analysis)) table.add(conversion_cells(analysis, *row));
  return table.html(analysis.refusal.empty() ? "Conversions, means over layers" : "Models of other schemes",
                    /*sortable=*/true);
}

std::string notes_html(const HeadAnalysis& analysis) {
  std::vector<std::string> notes = explanations(analysis);
  for (const ConversionAnalysis& one : analysis.conversions) {
    if (!one.impossible.empty()) notes.push_back(one.name + " is not possible: " + one.impossible);
  }
  return "<ul class=\"notes\">" + list_items(notes) + "</ul>\n";
}

std::string part_html(const std::string& id, const std::string& heading, const std::string& content) {
  return fmt::format("<h3 id=\"{}\">{}</h3>\n{}", id, heading, content);
}

}  // namespace

std::string analysis_page(const HeadAnalysis& analysis) {
  std::string body = "<section id=\"heads\" aria-labelledby=\"heads-h\">\n<p class=\"eyebrow\">Heads analysed</p>\n";
  body += fmt::format("<h1 id=\"heads-h\">{}</h1>\n", escape_html(analysis.model));
  body += "<p class=\"asks\">" + escape_html(capitalised(subject_text(analysis))) + "</p>\n";
  body += "<p class=\"finding\">" + escape_numbers(finding_text(analysis)) + "</p>\n" + facts_html(analysis);
  const bool refused = !analysis.refusal.empty();
  body += part_html(
      "conversions", refused ? "What schemes cost and save" : "What conversions cost and save",
      (refused ? "" : figures_html(saving_figures(analysis))) + conversion_table(analysis) + notes_html(analysis));
  if (analysis.has_spectra()) {
    body += part_html("similarity", "How alike heads are", figures_html(similarity_figures(analysis)));
    body += part_html("spectra", "How many dimensions heads use", figures_html(spectrum_figures(analysis)));
  }
  if (!analysis.images.empty()) body += part_html("looks", "Where heads look in images", image_looks_html(analysis));
  return html_page("headshare: heads of " + analysis.model, body + "</section>\n",
                   "Made by <code>headshare analyze</code>.");
}

}  // namespace headshare
