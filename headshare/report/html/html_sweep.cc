// Draws the figure of a sweep.
#include <algorithm>
#include <map>

#include "headshare/base/error.h"
#include "headshare/base/strings/visible.h"
#include "headshare/report/html/html_figures.h"
#include "headshare/report/statistics/option_names.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

constexpr double kLine = 15;  // of text below the axis

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
                 text_cell(setting_text(setting.setting)),
                 number_cell(seeds_text(setting)),
                 number_cell(summary_text(setting.validation_loss, 4)),
                 number_cell(quality_text(view.results.subject, setting.quality)),
                 text_cell(chosen ? "yes" : "")},
                chosen ? "best" : "");
    }
  }
  return table.html(caption, /*sortable=*/false);
}

// The axes tell the places of the settings, and heights.
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
    if (!row.finished() || !row.trained()) continue;
    for (const SettingRow& setting : row.settings) {
      if (!setting.seeds.empty()) losses.push_back(setting.validation_loss.mean);
    }
  }
  return losses;
}

// The settings are written below the axis: the values of their options one below the other, in two rows where they do
// not fit side by side.
struct SettingLabels {
  explicit SettingLabels(const Axes& axes) {
    double width = 0;
    for (const std::string& setting : axes.settings) {
      options.push_back(setting_options(setting));
      for (const auto& option : options.back()) width = std::max(width, text_width(abbreviated(option.second, 12)));
    }
    staggered = width > axes.place(1) - axes.place(0);
  }

  double row() const { return kLine * static_cast<double>(options.front().size()); }
  double name_y() const { return kLineFrame.bottom + 22 + row() * (staggered ? 2 : 1); }

  std::vector<std::vector<std::pair<std::string, std::string>>> options;  // of each setting
  bool staggered = false;
};

void draw_axes(SvgPlot* plot, const Axes& axes, const SettingLabels& labels) {
  plot->y_axis(axes.up, "validation loss (lower is better)");
  plot->segment({kLineFrame.left, kLineFrame.bottom}, {kLineFrame.right, kLineFrame.bottom}, "axis");
  for (size_t i = 0; i < axes.settings.size(); ++i) {
    double y = kLineFrame.bottom + 16 + (labels.staggered && i % 2 == 1 ? labels.row() : 0);
    for (const auto& [name, value] : labels.options[i]) {
      plot->text({axes.place(i), y}, abbreviated(value, 12), "tick", "middle");
      y += kLine;
    }
  }
  std::string names;
  for (const auto& [name, value] : labels.options.front()) names += (names.empty() ? "" : ", then ") + name;
  plot->x_name(labels.name_y(), names);
}

struct Place {
  const SettingRow* setting;
  PlotPoint at;
};

std::vector<Place> places_of(const VariantRow& row, const Axes& axes) {
  std::vector<Place> places;
  for (size_t i = 0; i < axes.settings.size(); ++i) {
    for (const SettingRow& setting : row.settings) {
      if (setting.setting != axes.settings[i] || setting.seeds.empty()) continue;
      places.push_back({&setting, {axes.place(i), axes.up(setting.validation_loss.mean)}});
    }
  }
  return places;
}

std::string value_text(const std::string& variant, const SettingRow& setting) {
  return join_text(variant, ", ", setting_text(setting.setting), ": validation loss ",
                   summary_text(setting.validation_loss, 4), ", ", seeds_in_words(setting));
}

void draw_variant(SvgPlot* plot, const ReportView& view, const VariantRow& row, const std::vector<Place>& places,
                  double height) {
  const SeriesStyle style = view.style(row.variant);
  std::vector<PlotPoint> points;
  for (const Place& place : places) points.push_back(place.at);
  plot->line(points, style);
  name_line_end(plot, view, row.variant, points.back(), height);
  plot->hit({kLineNames - 4, height - 8, SvgPlot::kWidth, height + 8});
  for (const Place& place : places) {
    plot->mark(value_text(row.variant, *place.setting), [&] {
      const SeriesStyle own{.index = style.index, .grey = lacks_seeds(*place.setting)};
      if (place.setting->setting == row.best.setting) plot->marker(place.at, own);
      plot->dot(place.at, own);
    });
  }
}

void draw_variants(SvgPlot* plot, const ReportView& view, const Axes& axes) {
  std::vector<const VariantRow*> rows;
  std::vector<std::vector<Place>> places;
  std::vector<PlotPoint> ends;
  for (const VariantRow& row : view.rows) {
    if (!row.finished() || !row.trained()) continue;
    rows.push_back(&row);
    places.push_back(places_of(row, axes));
    ends.push_back(places.back().back().at);
  }
  const std::vector<double> heights = name_heights(ends);
  for (size_t i = 0; i < rows.size(); ++i) {
    plot->mark("Chosen: " + value_text(rows[i]->variant, rows[i]->best),
               [&] { draw_variant(plot, view, *rows[i], places[i], heights[i]); });
  }
}

// Names the setting that most variants have their lowest validation loss with.
std::string title_of(const ReportView& view) {
  std::map<std::string, size_t> chosen;
  size_t all = 0;
  for (const VariantRow& row : view.rows) {
    if (!row.finished() || !row.trained()) continue;
    ++chosen[row.best.setting];
    ++all;
  }
  const auto most =
      std::max_element(chosen.begin(), chosen.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (2 * most->second <= all && all > 1) {
    return join_text("No setting has the lowest validation loss for most ", noun(view.results), "s");
  }
  return join_text(some_of(view.results, most->second, all), " lowest validation loss with ",
                   setting_text(most->first));
}

}  // namespace

HtmlFigure sweep_figure(const ReportView& view) {
  HtmlFigure figure{.id = view.id + "-sweep", .title = {}, .caption = {}, .svg = {}, .data = {}};
  const std::vector<double> losses = losses_of(view);
  const Axes axes{settings_of(view.results), fitted_scale(losses, false, kLineFrame.bottom, kLineFrame.top)};
  if (axes.settings.size() < 2 || losses.empty()) return figure;
  figure.title = title_of(view);
  figure.caption =
      "Mean validation loss of every setting. A marker shows the chosen one, with the lowest loss: the one in the "
      "tables." +
      grey_caption(view.rows);
  const SettingLabels labels(axes);
  SvgPlot plot(labels.name_y() + 12, kLineFrame);
  draw_axes(&plot, axes, labels);
  draw_variants(&plot, view, axes);
  figure.svg = plot.svg(figure.id, figure.title, figure.caption);
  figure.data = sweep_data(view, figure.title);
  return figure;
}

}  // namespace headshare
