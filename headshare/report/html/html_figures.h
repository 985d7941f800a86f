// The figures of report.html.
#pragma once

#include <string>
#include <vector>

#include "headshare/report/html/html_table.h"
#include "headshare/report/statistics/variant_rows.h"
#include "headshare/report/svg/svg_plot.h"

namespace headshare {

// One comparison on its way to a page.
struct ReportView {
  const Results& results;
  const std::vector<VariantRow>& rows;
  std::string id;  // begins the ids of its elements

  SeriesStyle style(const std::string& variant) const;
  std::string key(const std::string& variant) const;  // marker and escaped name
};

// For figures of lines: their frame, and the column right of it where the names stand.
inline constexpr double kFigureHeight = 380;
inline constexpr Box kLineFrame{58, 40, 424, 330};
inline constexpr double kLineNames = 436;

// Names at the ends of lines, spread so that none covers another, with a leader to each.
void name_line_ends(SvgPlot* plot, const ReportView& view, const std::vector<std::string>& names,
                    const std::vector<PlotPoint>& ends);

// Those there is data for: learning curves, differences to the reference, quality against attention parameters and
// against cache, seeds one by one, settings of a sweep.
std::vector<HtmlFigure> report_figures(const ReportView& view);

// The single figures; without data their svg is empty.
HtmlFigure curve_figure(const ReportView& view);
HtmlFigure difference_figure(const ReportView& view);
HtmlFigure parameter_figure(const ReportView& view);
HtmlFigure cache_figure(const ReportView& view);
HtmlFigure seed_figure(const ReportView& view);
HtmlFigure sweep_figure(const ReportView& view);

}  // namespace headshare
