#include "headshare/report/html/html_figures.h"

#include <algorithm>
#include <array>
#include <functional>

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

// A variant that is named after a scheme keeps that scheme's colour and marker in every report.
#define HS_SCHEME(name) #name,
constexpr std::array kKnown = {
#include "headshare/attention/schemes.inc"
};
#undef HS_SCHEME
const Box kFrame{58, 40, 524, 330};

std::string better_side(const Subject& subject, const char* axis) {
  const bool lower = subject.direction == Direction::kLowerIsBetter;
  if (std::string(axis) == "y") return lower ? " (lower is better)" : " (higher is better)";
  return lower ? " (left is better)" : " (right is better)";
}

using Number = std::function<double(const VariantRow&)>;

std::vector<const VariantRow*> finished_rows(const ReportView& view) {
  std::vector<const VariantRow*> rows;
  for (const VariantRow& row : view.rows) {
    if (row.finished()) rows.push_back(&row);
  }
  return rows;
}

std::string quality_data(const ReportView& view, const std::string& caption, const std::string& x_name,
                         const Number& x) {
  HtmlTable table({{.text = noun(view.results), .number = false},
                   {.text = x_name},
                   {.text = quality_name(view.results.subject)},
                   {.text = "seeds"}});
  for (const VariantRow* row : finished_rows(view)) {
    table.add({{view.key(row->variant)},
               number_cell(format_fixed(x(*row), 0)),
               number_cell(quality_text(view.results.subject, row->best.quality)),
               number_cell(seeds_text(row->best))});
  }
  return table.html(caption, /*sortable=*/false);
}

// Quality over some cost: points with their deviation, names beside them.
HtmlFigure scatter(const ReportView& view, HtmlFigure figure, const std::string& x_name, const Number& x) {
  std::vector<const VariantRow*> rows = finished_rows(view);
  std::erase_if(rows, [&](const VariantRow* row) { return x(*row) <= 0; });
  if (rows.empty()) return figure;
  std::vector<double> xs, ys;
  for (const VariantRow* row : rows) {
    const double deviation = row->best.quality.deviation.value_or(0);
    xs.push_back(x(*row));
    ys.push_back(row->best.quality.mean - deviation);
    ys.push_back(row->best.quality.mean + deviation);
  }
  const auto [least, most] = std::minmax_element(xs.begin(), xs.end());
  const Scale across = fitted_scale(xs, *most > 4 * *least, kFrame.left, kFrame.right);
  const Scale up = fitted_scale(ys, false, kFrame.bottom, kFrame.top);

  SvgPlot plot(kFigureHeight, kFrame);
  plot.x_axis(across, x_name + (across.logarithmic ? ", logarithmic" : ""));
  plot.y_axis(up, quality_name(view.results.subject) + better_side(view.results.subject, "y"));
  std::vector<LabelRequest> names;
  std::vector<Box> bars;
  for (const VariantRow* row : rows) {
    const PlotPoint at{across(x(*row)), up(row->best.quality.mean)};
    names.push_back({at.x, at.y, shortened(row->variant, 24)});
    const double deviation = row->best.quality.deviation.value_or(0);
    if (deviation == 0) continue;
    const double top = up(row->best.quality.mean + deviation);
    const double bottom = up(row->best.quality.mean - deviation);
    plot.vertical_bar(at.x, top, bottom, view.style(row->variant));
    bars.push_back({at.x - 4, std::min(top, bottom), at.x + 4, std::max(top, bottom)});
  }
  const std::vector<PlacedLabel> labels = place_labels(names, bars, kFrame);
  for (size_t i = 0; i < rows.size(); ++i) {
    const Box& box = labels[i].box;
    if (!labels[i].away) continue;
    const PlotPoint near{std::clamp(names[i].x, box.left, box.right), std::clamp(names[i].y, box.top, box.bottom)};
    plot.segment({names[i].x, names[i].y}, near, "leader");
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    plot.marker({names[i].x, names[i].y}, view.style(rows[i]->variant));
    plot.text({labels[i].x, labels[i].y}, names[i].text, "name", labels[i].anchor);
  }
  figure.svg = plot.svg(figure.id, figure.title, figure.caption);
  figure.data = quality_data(view, figure.title, x_name, x);
  return figure;
}

std::string spread_note(const ReportView& view) {
  const bool many = std::any_of(view.rows.begin(), view.rows.end(),
                                [](const VariantRow& row) { return row.best.quality.deviation.has_value(); });
  return many ? " Bars: one deviation over seeds to either side." : " One seed each.";
}

struct Lanes {
  double top = 0;
  double height = 0;
  double middle(size_t i) const { return top + height * (static_cast<double>(i) + 0.5); }
};

constexpr double kNameColumn = 116;  // left of plots with a lane for each scheme
constexpr double kLane = 27;

}  // namespace

SeriesStyle ReportView::style(const std::string& variant) const {
  const auto index_of = [](const std::string& name) {
    return static_cast<int>(std::find(kKnown.begin(), kKnown.end(), name) - kKnown.begin());
  };
  if (index_of(variant) < static_cast<int>(kKnown.size())) return {index_of(variant)};
  std::vector<bool> taken(kKnown.size());
  int number = 0;  // of this variant among the unknown
  for (const VariantRow& row : rows) {
    const int index = index_of(row.variant);
    if (index < static_cast<int>(kKnown.size())) taken[static_cast<size_t>(index)] = true;
  }
  for (const VariantRow& row : rows) {
    if (row.variant == variant) break;
    number += index_of(row.variant) == static_cast<int>(kKnown.size()) ? 1 : 0;
  }
  std::vector<int> free;
  for (size_t i = 0; i < taken.size(); ++i) {
    if (!taken[i]) free.push_back(static_cast<int>(i));
  }
  if (static_cast<size_t>(number) < free.size()) return {free[static_cast<size_t>(number)]};
  return {static_cast<int>(kKnown.size() - free.size()) + number};  // behind the known ones: no two are the same
}

std::string ReportView::key(const std::string& variant) const {
  return SvgPlot::key(style(variant)) + "<span class=\"scheme\">" + escape_html(variant) + "</span>";
}

void name_line_ends(SvgPlot* plot, const ReportView& view, const std::vector<std::string>& names,
                    const std::vector<PlotPoint>& ends) {
  std::vector<double> wished;
  for (const PlotPoint& end : ends) wished.push_back(end.y);
  const std::vector<double> heights = spread(wished, 16, plot->frame().top, plot->frame().bottom);
  for (size_t i = 0; i < ends.size(); ++i) {
    plot->segment({ends[i].x + 3, ends[i].y}, {kLineNames - 4, heights[i]}, "leader");
    plot->marker({kLineNames + 4, heights[i]}, view.style(names[i]), 4);
    plot->text({kLineNames + 14, heights[i] + 4}, shortened(names[i], 13), "name");
  }
}

HtmlFigure parameter_figure(const ReportView& view) {
  return scatter(
      view,
      {.id = view.id + "-parameters",
       .title = "Quality against attention parameters",
       .caption = "What the attention sub-layers hold, all of them together, without biases." + spread_note(view),
       .svg = {},
       .data = {}},
      "attention parameters", [](const VariantRow& row) { return static_cast<double>(row.attention_parameters); });
}

HtmlFigure cache_figure(const ReportView& view) {
  return scatter(view,
                 {.id = view.id + "-cache",
                  .title = "Quality against cache",
                  .caption = "What decoding keeps for each token, over all layers." + spread_note(view),
                  .svg = {},
                  .data = {}},
                 "cache, bytes per token",
                 [](const VariantRow& row) { return static_cast<double>(row.cache_bytes_per_token); });
}

HtmlFigure seed_figure(const ReportView& view) {
  const Subject& subject = view.results.subject;
  HtmlFigure figure{.id = view.id + "-seeds",
                    .title = "Every seed",
                    .caption = "One marker for each trained model; the upright line is their mean.",
                    .svg = {},
                    .data = {}};
  const std::vector<const VariantRow*> rows = finished_rows(view);
  if (rows.empty()) return figure;
  std::vector<double> values;
  HtmlTable table({{.text = noun(view.results), .number = false}, {.text = "seed"}, {.text = quality_name(subject)}});
  for (const VariantRow* row : rows) {
    for (const Cell* cell : cells_of(view.results, row->variant, row->best.setting)) {
      values.push_back(cell->quality);
      table.add({{view.key(row->variant)},
                 number_cell(std::to_string(cell->key.seed)),
                 number_cell(quality_text(subject, cell->quality))});
    }
  }
  if (subject.chance) values.push_back(*subject.chance);
  const double bottom = kFrame.top + kLane * static_cast<double>(rows.size());
  const Box frame{kNameColumn, kFrame.top, kFrame.right, bottom};
  const Scale across = fitted_scale(values, false, frame.left, frame.right);
  SvgPlot plot(bottom + 50, frame);
  plot.x_axis(across, quality_name(subject) + better_side(subject, "x"));
  if (subject.chance) {
    plot.segment({across(*subject.chance), frame.top}, {across(*subject.chance), bottom}, "zero");
    plot.text({across(*subject.chance) + 4, frame.top - 6}, "guessing", "tick");
  }
  const Lanes lanes{frame.top, kLane};
  for (size_t i = 0; i < rows.size(); ++i) {
    const double y = lanes.middle(i);
    const SeriesStyle style = view.style(rows[i]->variant);
    plot.text({frame.left - 10, y + 4}, shortened(rows[i]->variant, 14), "name", "end");
    plot.segment({frame.left, y}, {frame.right, y}, "lane");
    const double mean = across(rows[i]->best.quality.mean);
    plot.segment({mean, y - 10}, {mean, y + 10}, "mean");
    for (const Cell* cell : cells_of(view.results, rows[i]->variant, rows[i]->best.setting)) {
      plot.marker({across(cell->quality), y}, style, 4.5);
    }
  }
  figure.svg = plot.svg(figure.id, figure.title, figure.caption);
  figure.data = table.html(figure.title, /*sortable=*/false);
  return figure;
}

std::vector<HtmlFigure> report_figures(const ReportView& view) {
  std::vector<HtmlFigure> figures = {curve_figure(view), difference_figure(view), parameter_figure(view),
                                     cache_figure(view), seed_figure(view),       sweep_figure(view)};
  std::erase_if(figures, [](const HtmlFigure& figure) { return figure.svg.empty(); });
  return figures;
}

}  // namespace headshare
