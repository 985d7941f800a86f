// Draws the key figures: quality against what it costs.
#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/strings/visible.h"
#include "headshare/report/html/html_figures.h"
#include "headshare/report/statistics/decision.h"
#include "headshare/report/statistics/findings.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

constexpr double kHalfMarker = 7;  // half of what a marker takes
constexpr double kRing = 8.5;      // around the markers of the frontier

struct CostAxis {
  std::string id;
  std::string name;  // "cache"
  std::string axis;  // "cache, bytes per token"
  std::string unit;  // "bytes per token"
  std::string what;  // what is counted, a sentence
  RowCost cost;
};

// This is a variant on its way to the figure.
struct Point {
  const VariantRow* row;
  PlotPoint at;
  double top, bottom;  // of its error bar
  bool on_frontier;
  double cap;  // half the width of its error bar's ends
};

double deviation_of(const VariantRow& row) { return row.best.quality.deviation.value_or(0); }

// Says what is counted, and how points are drawn.
std::string caption_of(const ReportView& view, const CostAxis& axis) {
  const bool bars =
      std::any_of(view.rows.begin(), view.rows.end(), [](const VariantRow& row) { return deviation_of(row) > 0; });
  return join_text(axis.what, bars ? " Bars: one standard deviation over seeds." : " One seed each.",
                   grey_caption(view.rows));
}

std::string value_text(const ReportView& view, const CostAxis& axis, const Point& point) {
  const VariantRow& row = *point.row;
  return join_text(row.variant, ": ", quality_name(view.results.subject), " ",
                   quality_text(view.results.subject, row.best.quality), ", ", seeds_in_words(row.best), "; ",
                   count_text(static_cast<int64_t>(axis.cost(row))), " ", axis.unit,
                   point.on_frontier ? "; on the Pareto frontier" : "");
}

std::string data_table(const ReportView& view, const CostAxis& axis, const Rows& rows, const Rows& frontier,
                       const std::string& caption) {
  std::vector<HtmlTable::Heading> headings = {{.text = noun(view.results), .number = false},
                                              {.text = axis.axis},
                                              {.text = quality_name(view.results.subject)},
                                              {.text = "seeds"}};
  if (!frontier.empty()) headings.push_back({.text = "on the frontier", .number = false});
  HtmlTable table(headings);
  for (const VariantRow* row : rows) {
    const bool on = std::find(frontier.begin(), frontier.end(), row) != frontier.end();
    std::vector<HtmlCell> cells = {{view.key(row->variant)},
                                   number_cell(count_text(static_cast<int64_t>(axis.cost(*row)))),
                                   number_cell(quality_text(view.results.subject, row->best.quality)),
                                   number_cell(seeds_text(row->best))};
    if (!frontier.empty()) cells.push_back(text_cell(on ? "yes" : ""));
    table.add(std::move(cells));
  }
  return table.html(caption, /*sortable=*/false);
}

// Bars that overlap at nearly one x have ends of different widths, the longest bar the narrowest: each shows.
void widen_caps(std::vector<Point>* points) {
  constexpr double kNear = 8, kStep = 2, kWidest = 11;
  std::vector<Point*> longest;
  for (Point& point : *points) longest.push_back(&point);
  const auto length = [](const Point* point) { return point->bottom - point->top; };
  std::stable_sort(longest.begin(), longest.end(),
                   [&](const Point* a, const Point* b) { return length(a) > length(b); });
  for (size_t i = 0; i < longest.size(); ++i) {
    const auto overlaps =
        std::count_if(longest.begin(), longest.begin() + static_cast<std::ptrdiff_t>(i), [&](const Point* other) {
          return std::abs(other->at.x - longest[i]->at.x) < kNear && other->top < longest[i]->bottom &&
                 longest[i]->top < other->bottom;
        });
    longest[i]->cap = std::min(3 + kStep * static_cast<double>(overlaps), kWidest);
  }
}

// Draws both axes and returns the points exactly where their numbers are: the same cost is the same place.
std::vector<Point> place_points(SvgPlot* plot, const ReportView& view, const CostAxis& axis, const Rows& rows,
                                const Rows& frontier) {
  std::vector<double> xs, ys;
  for (const VariantRow* row : rows) {
    xs.push_back(axis.cost(*row));
    ys.push_back(row->best.quality.mean - deviation_of(*row));
    ys.push_back(row->best.quality.mean + deviation_of(*row));
  }
  const Scale across =
      fitted_scale(xs, /*logarithmic=*/xs.back() > 4 * xs.front(), kScatterFrame.left, kScatterFrame.right);
  const Scale up = fitted_scale(ys, false, kScatterFrame.bottom, kScatterFrame.top);
  plot->x_axis(across, axis.axis + (across.logarithmic ? ", logarithmic" : ""));
  const bool lower = view.results.subject.direction == Direction::kLowerIsBetter;
  plot->y_axis(up, quality_name(view.results.subject) + (lower ? " (lower is better)" : " (higher is better)"));
  std::vector<Point> points;
  for (const VariantRow* row : rows) {
    const double mean = row->best.quality.mean;
    const double deviation = deviation_of(*row);
    const bool on = std::find(frontier.begin(), frontier.end(), row) != frontier.end();
    points.push_back({row, {across(axis.cost(*row)), up(mean)}, up(mean + deviation), up(mean - deviation), on, 3});
  }
  widen_caps(&points);
  return points;
}

// The line begins at the cheapest: it is level until the next one is reached, then goes up to it; at last it is level
// to the end. It is empty without a frontier.
std::vector<PlotPoint> stepped_line(const std::vector<Point>& points) {
  std::vector<PlotPoint> line;
  for (const Point& point : points) {
    if (!point.on_frontier) continue;
    if (!line.empty()) line.push_back({point.at.x, line.back().y});
    line.push_back(point.at);
  }
  if (!line.empty()) line.push_back({kScatterFrame.right, line.back().y});
  return line;
}

std::string label_of(const VariantRow& row) {
  constexpr size_t kRoom = 22;
  if (!lacks_seeds(row.best)) return abbreviated(row.variant, kRoom);
  return join_text(name_within(row.variant, kRoom - 9), ", ", seeds_text(row.best), " seeds");
}

std::vector<PlacedLabel> place_names(const std::vector<Point>& points, const std::vector<PlotPoint>& line) {
  std::vector<LabelRequest> names;
  std::vector<Box> obstacles;
  for (const Point& point : points) {
    names.push_back({point.at.x, point.at.y, label_of(*point.row)});
    if (point.bottom > point.top) {
      obstacles.push_back({point.at.x - point.cap - 1, point.top, point.at.x + point.cap + 1, point.bottom});
    }
  }
  for (size_t i = 1; i < line.size(); ++i) {
    obstacles.push_back({std::min(line[i - 1].x, line[i].x) - 2, std::min(line[i - 1].y, line[i].y) - 2,
                         std::max(line[i - 1].x, line[i].x) + 2, std::max(line[i - 1].y, line[i].y) + 2});
  }
  return place_labels(names, obstacles, kScatterFrame);
}

void draw_point(SvgPlot* plot, const ReportView& view, const Point& point, const PlacedLabel& label) {
  const SeriesStyle style = view.style(point.row->variant);
  const PlotPoint at = point.at;
  if (label.away) {
    plot->segment(
        at, {std::clamp(at.x, label.box.left, label.box.right), std::clamp(at.y, label.box.top, label.box.bottom)},
        "leader");
  }
  if (point.bottom > point.top) plot->vertical_bar(at.x, point.top, point.bottom, style, point.cap);
  if (point.on_frontier) plot->ring(at, kRing);
  plot->marker(at, style);
  plot->hit({at.x - kHalfMarker, at.y - kHalfMarker, at.x + kHalfMarker, at.y + kHalfMarker});
  plot->text({label.x, label.y}, label_of(*point.row), point.on_frontier ? "name strong" : "name", label.anchor);
}

// Returns a figure that is empty where the variants do not differ in that cost.
HtmlFigure tradeoff_figure(const ReportView& view, const CostAxis& axis) {
  HtmlFigure figure{.id = view.id + "-" + axis.id, .title = {}, .caption = {}, .svg = {}, .data = {}};
  const Rows rows = rows_by_cost(view.rows, axis.cost);
  if (rows.empty() || axis.cost(*rows.front()) == axis.cost(*rows.back())) return figure;
  Rows frontier;  // of means that are decided
  if (means_are_decided(view.results, view.rows)) {
    frontier = pareto_frontier(view.results.subject, view.rows, axis.cost);
  }
  figure.title = frontier_finding(view.results, view.rows, frontier, axis.name);
  SvgPlot plot(kFigureHeight, kScatterFrame);
  const std::vector<Point> points = place_points(&plot, view, axis, rows, frontier);
  figure.caption = caption_of(view, axis);
  const std::vector<PlotPoint> line = stepped_line(points);
  if (!line.empty()) plot.path(line, "frontier");
  const std::vector<PlacedLabel> labels = place_names(points, line);
  for (size_t i = 0; i < points.size(); ++i) {
    plot.mark(value_text(view, axis, points[i]), [&] { draw_point(&plot, view, points[i], labels[i]); });
  }
  figure.svg = plot.svg(figure.id, figure.title, figure.caption);
  figure.data = data_table(view, axis, rows, frontier, figure.title);
  return figure;
}

}  // namespace

std::vector<HtmlFigure> key_figures(const ReportView& view) {
  std::vector<HtmlFigure> figures = {
      tradeoff_figure(
          view, {.id = "cache",
                 .name = "cache",
                 .axis = "cache, bytes per token",
                 .unit = "bytes of cache per token",
                 .what = "Cache: what decoding keeps for each token, over all layers.",
                 .cost = [](const VariantRow& row) { return static_cast<double>(row.size.cache_bytes_per_token); }}),
      tradeoff_figure(
          view, {.id = "parameters",
                 .name = "attention parameters",
                 .axis = "attention parameters",
                 .unit = "attention parameters",
                 .what = "Attention parameters: those of all attention sub-layers, without biases.",
                 .cost = [](const VariantRow& row) { return static_cast<double>(row.size.attention_parameters); }})};
  std::erase_if(figures, [](const HtmlFigure& figure) { return figure.svg.empty(); });
  return figures;
}

}  // namespace headshare
