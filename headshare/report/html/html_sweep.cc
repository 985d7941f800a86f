// The figure of a sweep.
#include <algorithm>

#include "headshare/report/html/html_figures.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

std::vector<std::string> settings_of(const Results& results) {
  std::vector<std::string> settings;
  for (const CellKey& key : results.planned) {
    if (std::find(settings.begin(), settings.end(), key.setting) == settings.end()) settings.push_back(key.setting);
  }
  return settings;
}

std::string sweep_data(const ReportView& view, const std::string& caption) {
  HtmlTable table({{.text = noun(view.results), .number = false},
                   {.text = "setting", .number = false},
                   {.text = "seeds"},
                   {.text = "validation loss"},
                   {.text = quality_name(view.results.subject)},
                   {.text = "chosen", .number = false}});
  for (const VariantRow& row : view.rows) {
    for (const SettingRow& setting : row.settings) {
      const bool chosen = setting.setting == row.best.setting && !setting.seeds.empty();
      table.add({{view.key(row.variant)},
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

// Places of the settings along the axis, and heights.
struct Axes {
  std::vector<std::string> settings;
  Scale up;

  double place(size_t i) const {
    const double width = (kLineFrame.right - kLineFrame.left) / static_cast<double>(settings.size());
    return kLineFrame.left + width * (static_cast<double>(i) + 0.5);
  }
};

std::vector<double> losses_of(const ReportView& view) {
  std::vector<double> losses;
  for (const VariantRow& row : view.rows) {
    for (const SettingRow& setting : row.settings) {
      if (!setting.seeds.empty()) losses.push_back(setting.validation_loss.mean);
    }
  }
  return losses;
}

// Of "learning-rate=0.001" the name or the value; a setting of several options stays whole.
std::string part_of(const std::string& setting, bool name) {
  const size_t equals = setting.find('=');
  if (equals == std::string::npos || setting.find('=', equals + 1) != std::string::npos) {
    return name ? "setting" : setting;
  }
  return name ? setting.substr(0, equals) : setting.substr(equals + 1);
}

void draw_axes(SvgPlot* plot, const Axes& axes) {
  plot->y_axis(axes.up, "validation loss (lower is better)");
  plot->segment({kLineFrame.left, kLineFrame.bottom}, {kLineFrame.right, kLineFrame.bottom}, "axis");
  const bool two_rows = axes.settings.size() > 4;  // of labels
  for (size_t i = 0; i < axes.settings.size(); ++i) {
    plot->text({axes.place(i), kLineFrame.bottom + (two_rows && i % 2 == 1 ? 30 : 16)},
               shortened(part_of(axes.settings[i], /*name=*/false), 18), "tick", "middle");
  }
  plot->text({(kLineFrame.left + kLineFrame.right) / 2, kLineFrame.bottom + 46},
             shortened(part_of(axes.settings.back(), /*name=*/true), 40), "label", "middle");
}

std::vector<PlotPoint> points_of(const VariantRow& row, const Axes& axes) {
  std::vector<PlotPoint> points;
  for (size_t i = 0; i < axes.settings.size(); ++i) {
    for (const SettingRow& setting : row.settings) {
      if (setting.setting != axes.settings[i] || setting.seeds.empty()) continue;
      points.push_back({axes.place(i), axes.up(setting.validation_loss.mean)});
    }
  }
  return points;
}

void draw_variants(SvgPlot* plot, const ReportView& view, const Axes& axes) {
  std::vector<std::string> names;
  std::vector<PlotPoint> ends;
  for (const VariantRow& row : view.rows) {
    if (!row.finished() || !row.trained()) continue;
    const std::vector<PlotPoint> points = points_of(row, axes);
    const auto chosen = std::find(axes.settings.begin(), axes.settings.end(), row.best.setting) - axes.settings.begin();
    plot->line(points, view.style(row.variant));
    plot->marker({axes.place(static_cast<size_t>(chosen)), axes.up(row.best.validation_loss.mean)},
                 view.style(row.variant));
    names.push_back(row.variant);
    ends.push_back(points.back());
  }
  name_line_ends(plot, view, names, ends);
}

}  // namespace

HtmlFigure sweep_figure(const ReportView& view) {
  HtmlFigure figure{.id = view.id + "-sweep",
                    .title = "Settings of the sweep",
                    .caption = "Mean validation loss of every setting; the one each row is shown with has a marker.",
                    .svg = {},
                    .data = {}};
  const std::vector<double> losses = losses_of(view);
  const Axes axes{settings_of(view.results), fitted_scale(losses, false, kLineFrame.bottom, kLineFrame.top)};
  if (axes.settings.size() < 2 || losses.empty()) return figure;
  SvgPlot plot(kFigureHeight, kLineFrame);
  draw_axes(&plot, axes);
  draw_variants(&plot, view, axes);
  figure.svg = plot.svg(figure.id, figure.title, figure.caption);
  figure.data = sweep_data(view, figure.title);
  return figure;
}

}  // namespace headshare
