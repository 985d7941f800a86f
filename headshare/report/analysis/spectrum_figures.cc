// Draws as curves how layers' energy is spread over dimensions.
#include <algorithm>
#include <array>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/report/analysis/analysis_figures.h"
#include "headshare/report/analysis/analysis_wording.h"
#include "headshare/report/html/html_figures.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

constexpr size_t kCurvePoints = 160;  // at most

// This point of a spectrum is drawn at one dimension.
struct CurveAt {
  double dimension = 0;  // share of all, from 0
  double value = 0;
};

// Returns every n-th of the points and the last.
std::vector<CurveAt> thinned(std::vector<CurveAt> all) {
  const size_t step = (all.size() + kCurvePoints - 1) / kCurvePoints;
  std::vector<CurveAt> kept;
  for (size_t i = 0; i < all.size(); i += step) kept.push_back(all[i]);
  if ((all.size() - 1) % step != 0) kept.push_back(all.back());
  return kept;
}

double dimension_of(const Spectrum& spectrum, size_t values) {
  return static_cast<double>(values) * static_cast<double>(spectrum.value_dimensions) /
         static_cast<double>(std::max<int64_t>(1, spectrum.dimensions));
}

// Returns the share of the energy that the first dimensions hold.
std::vector<CurveAt> energy_curve(const Spectrum& spectrum) {
  std::vector<CurveAt> curve = {{0, 0}};
  double sum = 0;
  for (const double share : spectrum.shares()) {
    sum += share;
    curve.push_back({dimension_of(spectrum, curve.size()), sum});
  }
  if (curve.back().dimension < 1) curve.push_back({1, sum});
  return thinned(std::move(curve));
}

// Returns singular values against the largest.
std::vector<CurveAt> value_curve(const Spectrum& spectrum) {
  std::vector<CurveAt> curve;
  for (const double value : spectrum.values) {
    curve.push_back({dimension_of(spectrum, curve.size() + 1), value / std::max(spectrum.values.front(), 1e-300)});
  }
  return thinned(std::move(curve));
}

std::vector<PlotPoint> on_paper(const std::vector<CurveAt>& curve, const Scale& across, const Scale& up) {
  std::vector<PlotPoint> points;
  for (const CurveAt& one : curve) points.push_back({across(100 * one.dimension), up(one.value)});
  return points;
}

// Draws some points of a curve, each with its value: `text` says it.
template <class Text>
void draw_values(SvgPlot* plot, const std::vector<CurveAt>& curve, const std::vector<PlotPoint>& points,
                 SeriesStyle style, const Text& text) {
  constexpr size_t kMost = 12;
  const size_t stride = (points.size() + kMost - 1) / kMost;
  for (size_t i = (points.size() - 1) % stride; i < points.size(); i += stride) {
    plot->mark(text(curve[i]), [&] { plot->dot(points[i], style); });
  }
}

std::string spectrum_data(const LayerAnalysis& layer) {
  constexpr std::array kShares = {0.5, 0.8, 0.9, 0.95, 0.99};
  std::vector<HtmlTable::Heading> headings = {{.text = "map", .number = false}, {.text = "dimensions"}};
  for (const double share : kShares) headings.push_back({.text = percent_text(share) + " of the energy"});
  HtmlTable table(headings);
  const auto add = [&](const std::string& name, const Spectrum& spectrum) {
    std::vector<HtmlCell> cells = {text_cell(name), number_cell(std::to_string(spectrum.dimensions))};
    for (const double share : kShares) cells.push_back(number_cell(std::to_string(spectrum.width_for(share))));
    table.add(std::move(cells));
  };
  add("stacked", layer.stacked);
  add("joint", layer.joint);
  for (size_t h = 0; h < layer.heads.size(); ++h) add(join_text("head ", h + 1), layer.heads[h]);
  return table.html("Dimensions that hold the energy, " + layer.layer, /*sortable=*/false);
}

// The curves rise at the left: names stand in the lower right.
void draw_energy_legend(SvgPlot* plot, const std::vector<std::pair<std::string, int>>& names) {
  double y = kScatterFrame.bottom - 18 * static_cast<double>(names.size()) + 6;
  for (const auto& [name, style] : names) {
    plot->line({{kScatterFrame.right - 128, y - 4}, {kScatterFrame.right - 98, y - 4}}, {style}, /*faint=*/style == 0);
    plot->text({kScatterFrame.right - 92, y}, name, "name");
    y += 18;
  }
}

HtmlFigure energy_figure(const LayerAnalysis& layer, size_t number) {
  constexpr SeriesStyle kStacked{1}, kJoint{7}, kHead{0};
  HtmlFigure figure{
      .id = join_text("energy-", number),
      .title = join_text(capitalised(layer.layer), ": ", width_text(layer.stacked), " dimensions hold ",
                         percent_text(kEnergyShare)),
      .caption = "Share of the energy that the first dimensions hold, by the share of a map's own dimensions.",
      .svg = {},
      .data = spectrum_data(layer)};
  SvgPlot plot(kFigureHeight, kScatterFrame);
  const Scale across{.low = 0, .high = 100, .from = kScatterFrame.left, .to = kScatterFrame.right};
  const Scale up{.low = 0, .high = 1, .from = kScatterFrame.bottom, .to = kScatterFrame.top};
  const Scale percent{.low = 0, .high = 100, .from = kScatterFrame.bottom, .to = kScatterFrame.top};
  plot.x_axis(across, "dimensions, %");
  plot.y_axis(percent, "energy, %");
  const auto draw = [&](const std::string& name, const Spectrum& spectrum, SeriesStyle style, bool faint) {
    plot.mark(join_text(name, ": ", width_text(spectrum), " dimensions hold ", percent_text(kEnergyShare)), [&] {
      const std::vector<CurveAt> curve = energy_curve(spectrum);
      const std::vector<PlotPoint> points = on_paper(curve, across, up);
      plot.line(points, style, faint);
      if (faint) return;  // single heads: too many
      draw_values(&plot, curve, points, style, [&](const CurveAt& at) {
        return join_text(name, ": ", percent_text(at.dimension, 0), " of the dimensions hold ",
                         percent_text(at.value, 1));
      });
    });
  };
  for (size_t h = 0; h < layer.heads.size(); ++h) draw(join_text("head ", h + 1), layer.heads[h], kHead, true);
  draw("joint", layer.joint, kJoint, false);
  draw("stacked", layer.stacked, kStacked, false);
  draw_energy_legend(&plot, {{"stacked", kStacked.index}, {"joint", kJoint.index}, {"single heads", kHead.index}});
  figure.svg = plot.svg(figure.id, figure.title, figure.caption);
  return figure;
}

// Returns as many layers as have room for their names, from the first to the last.
std::vector<size_t> named_layers(size_t layers) {
  constexpr size_t kMost = 12;
  std::vector<size_t> chosen;
  const size_t count = std::min(layers, kMost);
  for (size_t i = 0; i < count; ++i) chosen.push_back(count == 1 ? 0 : i * (layers - 1) / (count - 1));
  return chosen;
}

// These are the layers that are drawn, on paper.
struct ValueLines {
  Scale across, up;
  std::vector<std::vector<CurveAt>> curves;
  std::vector<std::vector<PlotPoint>> lines;
  std::vector<double> names;  // their heights
};

ValueLines value_lines(const HeadAnalysis& analysis, const std::vector<size_t>& shown) {
  constexpr double kLeast = 1e-4;  // what is smaller counts as nothing
  double least = 0.5;
  for (const size_t i : shown) {
    const std::vector<CurveAt> curve = value_curve(analysis.layer[i].stacked);
    least = std::min(least, std::max(kLeast, curve.back().value));
  }
  ValueLines made{.across = {.low = 0, .high = 100, .from = kLineFrame.left, .to = kLineFrame.right},
                  .up = {.low = least, .high = 1, .from = kLineFrame.bottom, .to = kLineFrame.top, .logarithmic = true},
                  .curves = {},
                  .lines = {},
                  .names = {}};
  std::vector<PlotPoint> ends;
  for (const size_t i : shown) {
    std::vector<CurveAt> curve = value_curve(analysis.layer[i].stacked);
    made.curves.push_back(curve);
    for (CurveAt& one : curve) one.value = std::max(one.value, least);
    made.lines.push_back(on_paper(curve, made.across, made.up));
    ends.push_back(made.lines.back().back());
  }
  made.names = name_heights(ends);
  return made;
}

std::string value_data(const HeadAnalysis& analysis, const std::string& caption) {
  HtmlTable table({{.text = "layer", .number = false}, {.text = "largest"}, {.text = "median"}, {.text = "least"}});
  for (const LayerAnalysis& layer : analysis.layer) {
    const std::vector<double>& values = layer.stacked.values;
    table.add({text_cell(layer.layer), number_cell(format_fixed(values.front(), 4)),
               number_cell(format_fixed(values[values.size() / 2], 4)), number_cell(format_fixed(values.back(), 4))});
  }
  return table.html(caption, /*sortable=*/false);
}

HtmlFigure value_figure(const HeadAnalysis& analysis) {
  const std::vector<size_t> shown = named_layers(analysis.layer.size());
  HtmlFigure figure{.id = "values",
                    .title = "Singular values of each layer's stacked map",
                    .caption = join_text("Against the largest; the steeper, the more heads have in common.",
                                         shown.size() < analysis.layer.size() ? " Twelve of the layers." : ""),
                    .svg = {},
                    .data = {}};
  SvgPlot plot(kFigureHeight, kLineFrame);
  const ValueLines drawn = value_lines(analysis, shown);
  plot.x_axis(drawn.across, "dimensions, %");
  plot.y_axis(drawn.up, "singular value / largest");
  for (size_t k = 0; k < shown.size(); ++k) {
    const LayerAnalysis& layer = analysis.layer[shown[k]];
    plot.mark(join_text(layer.layer, ": ", width_text(layer.stacked), " dimensions hold ", percent_text(kEnergyShare),
                        " of the energy"),
              [&] {
                const SeriesStyle style{static_cast<int>(k)};
                plot.line(drawn.lines[k], style);
                draw_values(&plot, drawn.curves[k], drawn.lines[k], style, [&](const CurveAt& at) {
                  return join_text(layer.layer, ": ", format_fixed(at.value, 4), " of the largest at ",
                                   percent_text(at.dimension, 0), " of the dimensions");
                });
                name_line_end(&plot, style, name_in_figure(layer.layer), drawn.lines[k].back(), drawn.names[k]);
              });
  }
  figure.svg = plot.svg(figure.id, figure.title, figure.caption);
  figure.data = value_data(analysis, figure.title);
  return figure;
}

}  // namespace

std::vector<HtmlFigure> spectrum_figures(const HeadAnalysis& analysis) {
  std::vector<HtmlFigure> figures = {value_figure(analysis)};
  for (const LayerAnalysis& layer : analysis.layer) figures.push_back(energy_figure(layer, figures.size()));
  return figures;
}

}  // namespace headshare
