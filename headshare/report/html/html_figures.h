// Draws the figures of report.html.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/report/html/html_table.h"
#include "headshare/report/statistics/variant_rows.h"
#include "headshare/report/svg/svg_plot.h"

namespace headshare {

// This is one comparison on its way to a page.
struct ReportView {
  const Results& results;
  const std::vector<VariantRow>& rows;
  std::string id;  // begins the ids of its elements

  SeriesStyle style(const std::string& variant) const;  // grey where seeds are missing
  std::string key(const std::string& variant) const;    // marker and escaped name
  std::string name(const std::string& variant) const;   // for a figure; "mqa 2/3" where seeds are missing
};

// Returns how a scheme is drawn in every report; nothing for other names.
std::optional<SeriesStyle> scheme_style(const std::string& scheme);

// Figures of lines have this frame, and right of it the column where the names stand.
inline constexpr double kFigureHeight = 340;
inline constexpr Box kLineFrame{54, 40, 290, 290};
inline constexpr Box kScatterFrame{54, 40, 400, 290};  // without such a column
inline constexpr double kLineNames = 300;
inline constexpr double kLane = 30;         // of figures with a lane for each variant
inline constexpr double kNameColumn = 126;  // left of the lanes

// Returns the heights of the names at the ends of lines, so that none covers another.
std::vector<double> name_heights(const std::vector<PlotPoint>& ends);
// Draws the name of a line that ends there, with a leader to it.
void name_line_end(SvgPlot* plot, SeriesStyle style, const std::string& name, PlotPoint end, double height);
void name_line_end(SvgPlot* plot, const ReportView& view, const std::string& name, PlotPoint end, double height);

// Shows what quality costs: quality against cache and against attention parameters, where the variants differ in that
// cost; with the Pareto frontier where means_are_decided(). Variants of the same cost stand at the same x.
std::vector<HtmlFigure> key_figures(const ReportView& view);

// Returns the other figures that there is data for: differences to the reference, learning curves, seeds one by one,
// settings of a sweep.
std::vector<HtmlFigure> more_figures(const ReportView& view);

// These are the single figures; without data their svg is empty.
HtmlFigure curve_figure(const ReportView& view);
HtmlFigure difference_figure(const ReportView& view);
HtmlFigure seed_figure(const ReportView& view);
HtmlFigure sweep_figure(const ReportView& view);

// Returns " Grey: fewer seeds than planned." where that is so of any row; "" else.
std::string grey_caption(const std::vector<VariantRow>& rows);

// Returns "3 of 9 schemes have their", "Both schemes have their", "The scheme has its".
std::string some_of(const Results& results, size_t some, size_t all);

}  // namespace headshare
