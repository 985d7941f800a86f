// Draws the figure of learning curves.
#include <algorithm>
#include <map>
#include <set>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/report/html/html_figures.h"
#include "headshare/report/statistics/speeds.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

struct Curve {
  const VariantRow* row;
  std::vector<CurvePoint> mean;    // at the steps all seeds were evaluated at
  std::vector<const Cell*> seeds;  // each with its own curve
};

std::vector<CurvePoint> mean_curve(const std::vector<const Cell*>& cells) {
  std::map<int64_t, std::vector<CurvePoint>> at;
  for (const Cell* cell : cells) {
    for (const CurvePoint& point : cell->curve) at[point.step].push_back(point);
  }
  std::vector<CurvePoint> mean;
  for (const auto& [step, points] : at) {
    if (points.size() != cells.size()) continue;
    CurvePoint sum{.step = step};
    for (const CurvePoint& point : points) {
      sum.seconds += point.seconds / static_cast<double>(points.size());
      sum.validation_loss += point.validation_loss / static_cast<double>(points.size());
    }
    mean.push_back(sum);
  }
  return mean;
}

std::vector<Curve> curves_of(const ReportView& view) {
  std::vector<Curve> curves;
  for (const VariantRow& row : view.rows) {
    if (!row.trained()) continue;
    const std::vector<const Cell*> cells = cells_of(view.results, row.variant, row.best.setting);
    Curve curve{&row, mean_curve(cells), cells};
    if (curve.mean.size() >= 2) curves.push_back(std::move(curve));
  }
  return curves;
}

// The figure has these axes: x is the step, or the time where that was made equal.
struct CurveAxes {
  bool by_time = false;
  Scale across;
  Scale up;
  bool cut = false;  // losses above the frame

  double x(const CurvePoint& point) const { return by_time ? point.seconds : static_cast<double>(point.step); }

  std::vector<PlotPoint> place(const std::vector<CurvePoint>& points) const {
    std::vector<PlotPoint> placed;
    for (const CurvePoint& point : points) placed.push_back({across(x(point)), up(point.validation_loss)});
    return placed;
  }
};

// The first losses are so large that the differences at the end, which matter, would vanish: what lies
// above the losses after a third of the training runs off the top. Nothing runs off the bottom.
CurveAxes curve_axes(const std::vector<Curve>& curves, bool by_time) {
  CurveAxes axes{.by_time = by_time, .across = {}, .up = {}};
  double x_end = 0;
  for (const Curve& curve : curves) x_end = std::max(x_end, axes.x(curve.mean.back()));
  std::vector<double> losses;
  double highest = curves.front().mean.back().validation_loss;
  for (const Curve& curve : curves) {
    for (const CurvePoint& point : curve.mean) {
      losses.push_back(point.validation_loss);
      if (3 * axes.x(point) >= x_end) highest = std::max(highest, point.validation_loss);
    }
    highest = std::max(highest, curve.mean.back().validation_loss);
    for (const Cell* seed : curve.seeds) {
      for (const CurvePoint& point : seed->curve) losses.push_back(point.validation_loss);
    }
  }
  axes.cut = std::erase_if(losses, [highest](double loss) { return loss > highest; }) > 0;
  axes.across = {.low = 0, .high = x_end > 0 ? x_end : 1, .from = kLineFrame.left, .to = kLineFrame.right};
  axes.up = fitted_scale(losses, false, kLineFrame.bottom, kLineFrame.top);
  return axes;
}

std::string curve_data(const std::vector<Curve>& curves, const std::string& caption) {
  std::set<int64_t> steps;
  std::vector<HtmlTable::Heading> headings = {{.text = "step"}};
  for (const Curve& curve : curves) {
    headings.push_back({.text = curve.row->variant});
    for (const CurvePoint& point : curve.mean) steps.insert(point.step);
  }
  HtmlTable table(headings);
  for (const int64_t step : steps) {
    std::vector<HtmlCell> cells = {number_cell(std::to_string(step))};
    for (const Curve& curve : curves) {
      const auto found = std::find_if(curve.mean.begin(), curve.mean.end(),
                                      [step](const CurvePoint& point) { return point.step == step; });
      cells.push_back(number_cell(found == curve.mean.end() ? "" : format_fixed(found->validation_loss, 4)));
    }
    table.add(std::move(cells));
  }
  return table.html(caption, /*sortable=*/false);
}

constexpr size_t kMostDots = 25;  // of a curve, that show their values

// Says how many have their lowest loss before the end, or that none has.
std::string title_of(const ReportView& view, const std::vector<Curve>& curves) {
  const auto early = static_cast<size_t>(std::count_if(curves.begin(), curves.end(), [](const Curve& curve) {
    const auto lowest = std::min_element(curve.mean.begin(), curve.mean.end(), [](const auto& a, const auto& b) {
      return a.validation_loss < b.validation_loss;
    });
    return lowest + 1 != curve.mean.end();
  }));
  const std::string when = early == 0 ? " lowest validation loss at the end" : " lowest validation loss before the end";
  return some_of(view.results, early == 0 ? curves.size() : early, curves.size()) + when;
}

std::string caption_of(const ReportView& view, const std::vector<Curve>& curves, const CurveAxes& axes) {
  const bool many_seeds =
      std::any_of(curves.begin(), curves.end(), [](const Curve& curve) { return curve.seeds.size() > 1; });
  return join_text("Validation loss in nats over ", axes.by_time ? "seconds of training" : "optimizer steps",
                   many_seeds ? ", mean over seeds; faint lines are the single seeds." : ".",
                   axes.cut ? " The first losses lie above the figure." : "",
                   axes.by_time && busy_speeds(view.results, view.rows).training
                       ? " Busy machine: these seconds hold the time of other programs."
                       : "",
                   grey_caption(view.rows));
}

std::string point_text(const CurveAxes& axes, const CurvePoint& point) {
  return join_text("validation loss ", format_fixed(point.validation_loss, 4),
                   axes.by_time ? " after " + format_fixed(point.seconds, 1) + " seconds"
                                : " at step " + std::to_string(point.step));
}

// Draws the faint line of each seed; its last point shows where it ends.
void draw_seeds(SvgPlot* plot, const CurveAxes& axes, const Curve& curve, SeriesStyle style) {
  if (curve.seeds.size() < 2) return;
  for (const Cell* seed : curve.seeds) {
    if (seed->curve.empty()) continue;
    const std::string text =
        join_text(curve.row->variant, ", seed ", seed->key.seed, ": ", point_text(axes, seed->curve.back()));
    plot->mark(text, [&] {
      plot->line(axes.place(seed->curve), style, /*faint=*/true);
      plot->dot(axes.place({seed->curve.back()}).front(), style);
    });
  }
}

void draw_curve(SvgPlot* plot, const ReportView& view, const CurveAxes& axes, const Curve& curve, double height) {
  const SeriesStyle style = view.style(curve.row->variant);
  const std::vector<PlotPoint> points = axes.place(curve.mean);
  draw_seeds(plot, axes, curve, style);
  plot->line(points, style);
  name_line_end(plot, view, curve.row->variant, points.back(), height);
  plot->hit({kLineNames - 4, height - 8, SvgPlot::kWidth, height + 8});
  const size_t stride = (points.size() + kMostDots - 1) / kMostDots;
  for (size_t i = (points.size() - 1) % stride; i < points.size(); i += stride) {
    if (points[i].y < kLineFrame.top) continue;
    plot->mark(join_text(curve.row->variant, ": ", point_text(axes, curve.mean[i])),
               [&] { plot->dot(points[i], style); });
  }
}

}  // namespace

HtmlFigure curve_figure(const ReportView& view) {
  HtmlFigure figure{.id = view.id + "-curves", .title = {}, .caption = {}, .svg = {}, .data = {}};
  const std::vector<Curve> curves = curves_of(view);
  if (curves.empty()) return figure;
  const CurveAxes axes = curve_axes(curves, view.results.match == "time");
  figure.title = title_of(view, curves);
  figure.caption = caption_of(view, curves, axes);
  SvgPlot plot(kFigureHeight, kLineFrame);
  const bool busy = axes.by_time && busy_speeds(view.results, view.rows).training;
  plot.x_axis(axes.across, !axes.by_time ? "step" : busy ? "seconds of training, busy machine" : "seconds of training");
  plot.y_axis(axes.up, "validation loss (lower is better)");
  std::vector<PlotPoint> ends;
  for (const Curve& curve : curves) ends.push_back(axes.place(curve.mean).back());
  const std::vector<double> heights = name_heights(ends);
  for (size_t i = 0; i < curves.size(); ++i) {
    plot.mark(join_text(curves[i].row->variant, ": ", point_text(axes, curves[i].mean.back()), ", ",
                        seeds_in_words(curves[i].row->best)),
              [&] { draw_curve(&plot, view, axes, curves[i], heights[i]); });
  }
  figure.svg = plot.svg(figure.id, figure.title, figure.caption);
  figure.data = curve_data(curves, figure.title);
  return figure;
}

}  // namespace headshare
