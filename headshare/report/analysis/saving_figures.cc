// Draws what each conversion costs against what it saves.
#include <algorithm>
#include <functional>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/base/strings/visible.h"
#include "headshare/report/analysis/analysis_figures.h"
#include "headshare/report/analysis/analysis_wording.h"
#include "headshare/report/html/html_figures.h"

namespace headshare {
namespace {

struct Saving {
  std::string id;
  std::string name;  // "cache"
  std::string what;  // a sentence
  std::function<double(const ConversionAnalysis&)> cost;
  bool busy = false;  // measured on a busy machine: grey
};

std::vector<Saving> savings(const HeadAnalysis& analysis) {
  std::vector<Saving> all;
  if (analysis.decodes()) {
    all.push_back({"cache", "cache", "Cache: what decoding keeps for each token.",
                   [](const ConversionAnalysis& row) { return static_cast<double>(row.size.cache_bytes_per_token); }});
  }
  all.push_back({"parameters", "attention parameters", "Attention parameters: those of all attention sub-layers.",
                 [](const ConversionAnalysis& row) { return static_cast<double>(row.size.attention_parameters); }});
  all.push_back({"time", time_heading(analysis),
                 join_text("Time: attention of the first layer, measured on this machine",
                           analysis.busy ? " while it was busy: grey, measure again." : "."),
                 [](const ConversionAnalysis& row) { return row.milliseconds.value_or(0); }, analysis.busy});
  return all;
}

struct SavingPoint {
  const ConversionAnalysis* row;
  double share;  // of the cost of the model as it is
  double error;
  PlotPoint at = {};
};

std::vector<SavingPoint> saving_points(const HeadAnalysis& analysis, const Saving& saving) {
  const double before = saving.cost(analysis.before);
  std::vector<SavingPoint> points = {{&analysis.before, 1, 0}};
  for (const ConversionAnalysis* row : possible(analysis)) {
    points.push_back({row, saving.cost(*row) / before, error_of(*row)});
  }
  return points;
}

SeriesStyle style_of(const ConversionAnalysis& row, const Saving& saving) {
  SeriesStyle style = scheme_style(row.scheme).value_or(SeriesStyle{});
  style.grey = saving.busy;
  return style;
}

void place(const HeadAnalysis& analysis, const Saving& saving, SvgPlot* plot, std::vector<SavingPoint>* points) {
  std::vector<double> xs, ys;
  for (const SavingPoint& point : *points) {
    xs.push_back(100 * point.share);
    ys.push_back(100 * point.error);
  }
  const Scale across = fitted_scale(xs, false, kScatterFrame.left, kScatterFrame.right);
  const Scale up = fitted_scale(ys, false, kScatterFrame.bottom, kScatterFrame.top);
  plot->x_axis(across, saving.name + ", % of the model as it is");
  plot->y_axis(up, error_name(analysis) + ", %");
  for (SavingPoint& point : *points) point.at = {across(100 * point.share), up(100 * point.error)};
}

std::string saving_data(const HeadAnalysis& analysis, const Saving& saving, const std::vector<SavingPoint>& points) {
  HtmlTable table({{.text = "conversion", .number = false}, {.text = saving.name}, {.text = error_name(analysis)}});
  for (const SavingPoint& point : points) {
    table.add({text_cell(row_name(analysis, *point.row)), number_cell(percent_text(point.share)),
               number_cell(error_text(point.error))});
  }
  return table.html(saving.name, /*sortable=*/false);
}

void draw_points(const HeadAnalysis& analysis, const Saving& saving, const std::vector<SavingPoint>& points,
                 SvgPlot* plot) {
  constexpr double kMarker = 7;
  std::vector<LabelRequest> names;
  for (const SavingPoint& point : points) {
    names.push_back({point.at.x, point.at.y, abbreviated(row_name(analysis, *point.row), 22)});
  }
  const std::vector<PlacedLabel> labels = place_labels(names, {}, kScatterFrame);
  for (size_t i = 0; i < points.size(); ++i) {
    const SavingPoint& point = points[i];
    const PlacedLabel& label = labels[i];
    const std::string text = join_text(names[i].text, ": ", error_name(analysis), " ", error_text(point.error), "; ",
                                       saving.name, " ", percent_text(point.share));
    plot->mark(text, [&] {
      if (label.away) {
        plot->segment(point.at,
                      {std::clamp(point.at.x, label.box.left, label.box.right),
                       std::clamp(point.at.y, label.box.top, label.box.bottom)},
                      "leader");
      }
      plot->marker(point.at, style_of(*point.row, saving));
      plot->hit({point.at.x - kMarker, point.at.y - kMarker, point.at.x + kMarker, point.at.y + kMarker});
      plot->text({label.x, label.y}, names[i].text, "name", label.anchor);
    });
  }
}

HtmlFigure saving_figure(const HeadAnalysis& analysis, const Saving& saving) {
  HtmlFigure figure{.id = "saving-" + saving.id,
                    .title = "Error against " + saving.name,
                    .caption = saving.what + " Lower and further left is better.",
                    .svg = {},
                    .data = {}};
  SvgPlot plot(kFigureHeight, kScatterFrame);
  std::vector<SavingPoint> points = saving_points(analysis, saving);
  place(analysis, saving, &plot, &points);
  draw_points(analysis, saving, points, &plot);
  figure.svg = plot.svg(figure.id, figure.title, figure.caption);
  figure.data = saving_data(analysis, saving, points);
  return figure;
}

}  // namespace

std::vector<HtmlFigure> saving_figures(const HeadAnalysis& analysis) {
  std::vector<HtmlFigure> figures;
  for (const Saving& saving : savings(analysis)) figures.push_back(saving_figure(analysis, saving));
  return figures;
}

}  // namespace headshare
