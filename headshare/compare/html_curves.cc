// Figures with lines: learning curves and the settings of a sweep.
#include <algorithm>
#include <map>
#include <set>

#include "headshare/base/format.h"
#include "headshare/compare/html_figures.h"
#include "headshare/compare/wording.h"

namespace headshare {
namespace {

const Box kFrame{58, 40, 424, 330};  // names stand to the right
constexpr double kHeight = 380;
constexpr double kNames = 436;

struct Curve {
  std::string scheme;
  std::vector<CurvePoint> mean;                // at the steps all seeds were evaluated at
  std::vector<std::vector<CurvePoint>> seeds;  // each
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
  for (const SchemeRow& row : view.rows) {
    if (!row.trained) continue;
    const std::vector<const Cell*> cells = cells_of(view.results, row.scheme, row.best.setting);
    Curve curve{row.scheme, mean_curve(cells), {}};
    for (const Cell* cell : cells) curve.seeds.push_back(cell->curve);
    if (curve.mean.size() >= 2) curves.push_back(std::move(curve));
  }
  return curves;
}

// The first losses are so large that the differences at the end, which matter, would vanish: what lies
// above the losses after a third of the training runs off the top.
double highest_shown(const std::vector<Curve>& curves, double x_end, const auto& x) {
  double highest = -HUGE_VAL;
  double last = -HUGE_VAL;
  for (const Curve& curve : curves) {
    for (const CurvePoint& point : curve.mean) {
      if (x(point) >= x_end / 3) highest = std::max(highest, point.validation_loss);
    }
    last = std::max(last, curve.mean.back().validation_loss);
  }
  return std::max(highest, last);
}

// Names at the ends of lines, spread so that none covers another, with a line to each.
void name_ends(SvgPlot* plot, const ReportView& view, const std::vector<std::string>& schemes,
               const std::vector<PlotPoint>& ends) {
  std::vector<double> wished;
  for (const PlotPoint& end : ends) wished.push_back(end.y);
  const std::vector<double> heights = spread(wished, 16, plot->frame().top, plot->frame().bottom);
  for (size_t i = 0; i < ends.size(); ++i) {
    plot->segment({ends[i].x + 3, ends[i].y}, {kNames - 4, heights[i]}, "leader");
    plot->marker({kNames + 4, heights[i]}, view.style(schemes[i]), 4);
    plot->text({kNames + 14, heights[i] + 4}, shortened(schemes[i], 13), "name");
  }
}

std::string curve_data(const std::vector<Curve>& curves, const std::string& caption) {
  std::set<int64_t> steps;
  std::vector<HtmlTable::Heading> headings = {{.text = "step"}};
  for (const Curve& curve : curves) {
    headings.push_back({.text = curve.scheme});
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

}  // namespace

HtmlFigure curve_figure(const ReportView& view) {
  const bool by_time = view.results.match == "time";
  HtmlFigure figure{.id = view.id + "-curves",
                    .title = "Learning curves",
                    .caption = std::string("Validation loss in nats over ") +
                               (by_time ? "seconds of training" : "optimizer steps") + ", mean over seeds",
                    .svg = {},
                    .data = {}};
  const std::vector<Curve> curves = curves_of(view);
  if (curves.empty()) return figure;
  const auto x = [by_time](const CurvePoint& p) { return by_time ? p.seconds : static_cast<double>(p.step); };
  double x_end = 0;
  std::vector<double> losses;
  bool many_seeds = false;
  for (const Curve& curve : curves) {
    x_end = std::max(x_end, x(curve.mean.back()));
    many_seeds = many_seeds || curve.seeds.size() > 1;
    for (const CurvePoint& point : curve.mean) losses.push_back(point.validation_loss);
  }
  const double top = highest_shown(curves, x_end, x);
  figure.caption += many_seeds ? "; faint lines are the single seeds." : ".";
  if (std::erase_if(losses, [top](double loss) { return loss > top; }) > 0) {
    figure.caption += " The first losses run off the top, so that the last can be told apart.";
  }
  const Scale up = fitted_scale(losses, false, kFrame.bottom, kFrame.top);
  const Scale across{.low = 0, .high = x_end > 0 ? x_end : 1, .from = kFrame.left, .to = kFrame.right};
  const auto place = [&](const std::vector<CurvePoint>& points) {
    std::vector<PlotPoint> placed;
    for (const CurvePoint& point : points) placed.push_back({across(x(point)), up(point.validation_loss)});
    return placed;
  };
  SvgPlot plot(kHeight, kFrame);
  plot.x_axis(across, by_time ? "seconds of training" : "step");
  plot.y_axis(up, "validation loss (lower is better)");
  std::vector<std::string> schemes;
  std::vector<PlotPoint> ends;
  for (const Curve& curve : curves) {
    if (curve.seeds.size() < 2) continue;
    for (const auto& seed : curve.seeds) plot.line(place(seed), view.style(curve.scheme), /*faint=*/true);
  }
  for (const Curve& curve : curves) {
    const std::vector<PlotPoint> points = place(curve.mean);
    plot.line(points, view.style(curve.scheme));
    schemes.push_back(curve.scheme);
    ends.push_back(points.back());
  }
  name_ends(&plot, view, schemes, ends);
  figure.svg = plot.svg(figure.id, figure.title, figure.caption);
  figure.data = curve_data(curves, figure.title);
  return figure;
}

namespace {

std::vector<std::string> settings_of(const Results& results) {
  std::vector<std::string> settings;
  for (const CellKey& key : results.planned) {
    if (std::find(settings.begin(), settings.end(), key.setting) == settings.end()) settings.push_back(key.setting);
  }
  return settings;
}

std::string sweep_data(const ReportView& view, const std::string& caption) {
  HtmlTable table({{.text = "scheme", .number = false},
                   {.text = "setting", .number = false},
                   {.text = "seeds"},
                   {.text = "validation loss"},
                   {.text = quality_name(view.results.subject)},
                   {.text = "chosen", .number = false}});
  for (const SchemeRow& row : view.rows) {
    for (const SettingRow& setting : row.settings) {
      const bool chosen = setting.setting == row.best.setting && !setting.seeds.empty();
      table.add({{view.key(row.scheme)},
                 text_cell(setting.setting),
                 number_cell(seeds_text(setting)),
                 number_cell(summary_text(setting.validation_loss, 4)),
                 number_cell(quality_text(view.results.subject, setting.quality)),
                 text_cell(chosen ? "yes" : "")},
                chosen);
    }
  }
  return table.html(caption, /*sortable=*/false);
}

}  // namespace

HtmlFigure sweep_figure(const ReportView& view) {
  HtmlFigure figure{.id = view.id + "-sweep",
                    .title = "Settings of the sweep",
                    .caption = "Mean validation loss of every setting; the one each scheme is shown with has a marker.",
                    .svg = {},
                    .data = {}};
  const std::vector<std::string> settings = settings_of(view.results);
  if (settings.size() < 2) return figure;
  std::vector<double> losses;
  for (const SchemeRow& row : view.rows) {
    for (const SettingRow& setting : row.settings) {
      if (!setting.seeds.empty()) losses.push_back(setting.validation_loss.mean);
    }
  }
  if (losses.empty()) return figure;
  const Scale up = fitted_scale(losses, false, kFrame.bottom, kFrame.top);
  const double width = (kFrame.right - kFrame.left) / static_cast<double>(settings.size());
  SvgPlot plot(kHeight, kFrame);
  plot.y_axis(up, "validation loss (lower is better)");
  plot.segment({kFrame.left, kFrame.bottom}, {kFrame.right, kFrame.bottom}, "axis");
  const auto place = [&](size_t i) { return kFrame.left + width * (static_cast<double>(i) + 0.5); };
  for (size_t i = 0; i < settings.size(); ++i) {
    // Of "learning-rate=0.001" the value: the name is the same for all, and in the data.
    const size_t value = settings[i].find('=');
    const bool one_option = value != std::string::npos && settings[i].find('=', value + 1) == std::string::npos;
    const std::string label = shortened(one_option ? settings[i].substr(value + 1) : settings[i], 18);
    plot.text({place(i), kFrame.bottom + 16 + (settings.size() > 4 && i % 2 == 1 ? 14 : 0)}, label, "tick", "middle");
  }
  const size_t name_end = settings.back().find('=');
  plot.text({(kFrame.left + kFrame.right) / 2, kFrame.bottom + 44},
            name_end == std::string::npos ? "setting" : shortened(settings.back().substr(0, name_end), 40), "label",
            "middle");
  std::vector<std::string> schemes;
  std::vector<PlotPoint> ends;
  for (const SchemeRow& row : view.rows) {
    std::vector<PlotPoint> points;
    for (size_t i = 0; i < settings.size(); ++i) {
      const auto found = std::find_if(row.settings.begin(), row.settings.end(), [&](const SettingRow& setting) {
        return setting.setting == settings[i] && !setting.seeds.empty();
      });
      if (found != row.settings.end()) points.push_back({place(i), up(found->validation_loss.mean)});
    }
    if (points.empty() || !row.trained) continue;
    plot.line(points, view.style(row.scheme));
    const auto chosen = std::find(settings.begin(), settings.end(), row.best.setting) - settings.begin();
    plot.marker({place(static_cast<size_t>(chosen)), up(row.best.validation_loss.mean)}, view.style(row.scheme));
    schemes.push_back(row.scheme);
    ends.push_back(points.back());
  }
  name_ends(&plot, view, schemes, ends);
  figure.svg = plot.svg(figure.id, figure.title, figure.caption);
  figure.data = sweep_data(view, figure.title);
  return figure;
}

}  // namespace headshare
