// How alike heads are, as heat maps.
#include <algorithm>
#include <cmath>
#include <map>

#include "headshare/base/error.h"
#include "headshare/report/analysis/analysis_figures.h"
#include "headshare/report/analysis/analysis_wording.h"
#include "headshare/report/statistics/wording.h"
#include "headshare/report/svg/svg_plot.h"

namespace headshare {
namespace {

constexpr double kMapTop = 30;  // of a map
constexpr double kLabels = 24;  // left of a map: numbers of heads
constexpr double kLegend = 34;  // from a map's lower edge to its legend
constexpr double kLegendHeight = 9;
constexpr double kLeastLabel = 13;  // height that a head's number takes
constexpr int kLegendCells = 20;
constexpr size_t kMostSingleHeads = 32;
constexpr int kStrengths = 25;  // of cells that are drawn together

// From a similarity to a colour and its strength.
struct HeatScale {
  double low = 0, high = 1;
  bool diverging = false;  // from 0 on both sides, with a colour for each sign

  double strength(double value) const {
    constexpr double kLeast = 0.04;  // of what is lowest; the frame of the map shows through
    if (diverging) return std::abs(value) / std::max(high, -low);
    return kLeast + (1 - kLeast) * (value - low) / (high - low);
  }
  std::string css(double value) const { return diverging && value < 0 ? "heat below" : "heat"; }
};

// Of pairs of different heads in all layers.
HeatScale heat_scale(const HeadAnalysis& analysis, HeadSimilarity LayerAnalysis::*kind, bool diverging) {
  double low = 1, high = -1;
  for (const LayerAnalysis& layer : analysis.layer) {
    const HeadSimilarity& heads = layer.*kind;
    for (size_t i = 0; i < heads.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        low = std::min(low, heads[i][j]);
        high = std::max(high, heads[i][j]);
      }
    }
  }
  constexpr double kLeastRange = 1e-6;
  if (!diverging) return {.low = low, .high = std::max(high, low + kLeastRange)};
  return {.low = std::min(low, 0.0), .high = std::max(high, kLeastRange), .diverging = true};
}

struct HeatMap {
  std::string title;
  const HeadSimilarity& heads;
  HeatScale scale;
};

// Of which each can be pointed at, and read in a table.
bool has_single_cells(const HeatMap& map) { return map.heads.size() <= kMostSingleHeads; }

// With a real minus sign.
std::string signed_text(double value) {
  const std::string text = similarity_text(value);
  return text.front() == '-' ? "−" + text.substr(1) : text;
}

// Every how many heads have their number beside the map.
size_t label_step(double cell, double room) { return static_cast<size_t>(std::max(1.0, std::ceil(room / cell))); }

void draw_cells(SvgPlot* plot, const HeatMap& map, double left, double cell) {
  for (size_t i = 0; i < map.heads.size(); ++i) {
    for (size_t j = 0; j < map.heads.size(); ++j) {
      const double x = left + static_cast<double>(j) * cell;
      const double y = kMapTop + static_cast<double>(i) * cell;
      const double value = map.heads[i][j];
      const std::string text =
          i == j ? join_text("head ", i + 1) : join_text("heads ", i + 1, " and ", j + 1, ": ", signed_text(value));
      const Box box{x, y, x + cell, y + cell};
      plot->mark(text, [&] {
        i == j ? plot->cell(box, "heat self", 1) : plot->cell(box, map.scale.css(value), map.scale.strength(value));
      });
    }
  }
}

// "head 7: most alike is head 12, 0.83"
std::string row_text(const HeatMap& map, size_t head) {
  size_t best = head == 0 ? 1 : 0;
  for (size_t j = 0; j < map.heads.size(); ++j) {
    if (j != head && map.heads[head][j] > map.heads[head][best]) best = j;
  }
  return join_text("head ", head + 1, ": most alike is head ", best + 1, ", ", signed_text(map.heads[head][best]));
}

// The cells of many heads, drawn together where they look alike: a group for each would make pages of many MB. A row
// tells its largest value; the JSON has all numbers.
void draw_many_cells(SvgPlot* plot, const HeatMap& map, double left, double cell) {
  std::map<std::pair<std::string, int>, std::vector<Box>> boxes;  // by colour and strength, in steps
  for (size_t i = 0; i < map.heads.size(); ++i) {
    const double y = kMapTop + static_cast<double>(i) * cell;
    const std::pair<std::string, int>* run = nullptr;  // of the cell before
    for (size_t j = 0; j < map.heads.size(); ++j) {
      const double x = left + static_cast<double>(j) * cell;
      const double value = map.heads[i][j];
      const std::pair look = i == j ? std::pair<std::string, int>("heat self", kStrengths)
                                    : std::pair(map.scale.css(value),
                                                static_cast<int>(std::lround(kStrengths * map.scale.strength(value))));
      const auto found = boxes.try_emplace(look).first;
      if (run == &found->first) {
        found->second.back().right = x + cell;
      } else {
        found->second.push_back({x, y, x + cell, y + cell});
      }
      run = &found->first;
    }
  }
  for (const auto& [look, all] : boxes) plot->cells(all, look.first, static_cast<double>(look.second) / kStrengths);
  const double width = cell * static_cast<double>(map.heads.size());
  for (size_t i = 0; i < map.heads.size(); ++i) {
    const double y = kMapTop + static_cast<double>(i) * cell;
    plot->mark(row_text(map, i), [&] { plot->hit({left, y, left + width, y + cell}); });
  }
}

void draw_legend(SvgPlot* plot, const HeatScale& scale, double left, double width, double top) {
  const double each = width / kLegendCells;
  for (int i = 0; i < kLegendCells; ++i) {
    const double value = scale.low + (scale.high - scale.low) * (i + 0.5) / kLegendCells;
    plot->cell({left + i * each, top, left + (i + 1) * each, top + kLegendHeight}, scale.css(value),
               scale.strength(value));
  }
  const double below = top + kLegendHeight + 14;
  plot->text({left, below}, signed_text(scale.low), "tick");
  plot->text({left + width, below}, signed_text(scale.high), "tick", "end");
}

void draw_map(SvgPlot* plot, const HeatMap& map, double left, double width) {
  const double cell = width / static_cast<double>(map.heads.size());
  plot->text({left, kMapTop - 12}, map.title, "label");
  const auto middle = [cell](size_t i) { return (static_cast<double>(i) + 0.5) * cell; };
  for (size_t i = 0; i < map.heads.size(); i += label_step(cell, kLeastLabel)) {
    plot->text({left - 6, kMapTop + middle(i) + 4}, std::to_string(i + 1), "tick", "end");
  }
  const double room = text_width(std::to_string(map.heads.size())) + 3;
  for (size_t i = 0; i < map.heads.size(); i += label_step(cell, room)) {
    plot->text({left + middle(i), kMapTop + width + 15}, std::to_string(i + 1), "tick", "middle");
  }
  plot->mark(map.title, [&] {
    has_single_cells(map) ? draw_cells(plot, map, left, cell) : draw_many_cells(plot, map, left, cell);
    plot->path({{left, kMapTop},
                {left + width, kMapTop},
                {left + width, kMapTop + width},
                {left, kMapTop + width},
                {left, kMapTop}},
               "frontier");
  });
  draw_legend(plot, map.scale, left, width, kMapTop + width + kLegend);
}

std::string heat_data(const HeatMap& map) {
  std::vector<HtmlTable::Heading> headings = {{.text = "head", .number = false}};
  for (size_t j = 0; j < map.heads.size(); ++j) headings.push_back({.text = std::to_string(j + 1)});
  HtmlTable table(headings);
  for (size_t i = 0; i < map.heads.size(); ++i) {
    std::vector<HtmlCell> cells = {text_cell(std::to_string(i + 1))};
    for (const double value : map.heads[i]) cells.push_back(number_cell(similarity_text(value)));
    table.add(std::move(cells));
  }
  return table.html(map.title, /*sortable=*/false);
}

HtmlFigure similarity_figure(const LayerAnalysis& layer, const std::vector<HeatMap>& maps, size_t number) {
  constexpr double kGap = 14;
  const auto count = static_cast<double>(maps.size());
  const double width = maps.size() == 1 ? 250 : (SvgPlot::kWidth - kGap * (count - 1)) / count - kLabels - 2;
  SvgPlot plot(kMapTop + width + kLegend + kLegendHeight + 20, {kLabels, kMapTop, kLabels + width, kMapTop + width});
  const HeadPair pair = *most_alike(layer.weights);
  HtmlFigure figure{.id = join_text("similarity-", number),
                    .title = join_text(capitalised(layer.layer), ": heads ", pair.first + 1, " and ", pair.second + 1,
                                       " are most alike, ", similarity_text(pair.similarity)),
                    .caption = "Stronger blue: more alike; orange: opposed. Grey: a head and itself.",
                    .svg = {},
                    .data = {}};
  double left = kLabels;
  for (const HeatMap& map : maps) {
    draw_map(&plot, map, left, width);
    if (has_single_cells(map)) figure.data += heat_data(map);
    left += width + kGap + kLabels;
  }
  figure.svg = plot.svg(figure.id, figure.title, figure.caption);
  return figure;
}

}  // namespace

std::vector<HtmlFigure> similarity_figures(const HeadAnalysis& analysis) {
  const HeatScale cosines = heat_scale(analysis, &LayerAnalysis::weights, /*diverging=*/true);
  const HeatScale attention = heat_scale(analysis, &LayerAnalysis::maps, /*diverging=*/false);
  std::vector<HtmlFigure> figures;
  for (const LayerAnalysis& layer : analysis.layer) {
    std::vector<HeatMap> maps = {{"score maps, cosine", layer.weights, cosines}};
    if (!layer.maps.empty()) maps.push_back({"attention on the text", layer.maps, attention});
    figures.push_back(similarity_figure(layer, maps, figures.size() + 1));
  }
  return figures;
}

}  // namespace headshare
