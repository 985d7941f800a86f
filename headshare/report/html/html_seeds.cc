// Draws the figure of all seeds.
#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/report/html/html_figures.h"
#include "headshare/report/statistics/findings.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

constexpr double kTop = 40;
constexpr double kRight = 400;
constexpr double kJitter = 6;  // seeds stand at different heights, so that none hides another

// The level of guessing is drawn where it leaves the seeds at least this share of the axis.
constexpr double kLeastShare = 0.4;

struct Lane {
  const VariantRow* row;
  std::vector<const Cell*> cells;
};

std::vector<Lane> lanes_of(const ReportView& view) {
  std::vector<Lane> lanes;
  for (const VariantRow& row : view.rows) {
    if (row.finished()) lanes.push_back({&row, cells_of(view.results, row.variant, row.best.setting)});
  }
  return lanes;
}

std::string lane_text(const Subject& subject, const Lane& lane) {
  std::string text = join_text(lane.row->variant, ": ", quality_name(subject), " ",
                               quality_text(subject, lane.row->best.quality), ", ", seeds_in_words(lane.row->best));
  if (lane.cells.size() > 1) {
    text += join_text("; from ", quality_text(subject, lane.row->best.quality.min), " to ",
                      quality_text(subject, lane.row->best.quality.max));
  }
  return text;
}

std::string seed_data(const ReportView& view, const std::vector<Lane>& lanes, const std::string& caption) {
  const Subject& subject = view.results.subject;
  HtmlTable table({{.text = noun(view.results), .number = false}, {.text = "seed"}, {.text = quality_name(subject)}});
  for (const Lane& lane : lanes) {
    for (const Cell* cell : lane.cells) {
      table.add({{view.key(lane.row->variant)},
                 number_cell(std::to_string(cell->key.seed)),
                 number_cell(quality_text(subject, cell->quality))});
    }
  }
  return table.html(caption, /*sortable=*/false);
}

void draw_lane(SvgPlot* plot, const ReportView& view, const Lane& lane, const Scale& across, double y) {
  const Subject& subject = view.results.subject;
  const Box& frame = plot->frame();
  plot->hit({0, y - kLane / 2, SvgPlot::kWidth, y + kLane / 2});
  plot->text({frame.left - 10, y + 4}, view.name(lane.row->variant), "name", "end");
  plot->segment({frame.left, y}, {frame.right, y}, "lane");
  const double mean = across(lane.row->best.quality.mean);
  plot->segment({mean, y - 11}, {mean, y + 11}, "mean");
  const auto count = static_cast<double>(lane.cells.size());
  for (size_t i = 0; i < lane.cells.size(); ++i) {
    const double offset = count > 1 ? kJitter * (2 * static_cast<double>(i) / (count - 1) - 1) : 0;
    const Cell& cell = *lane.cells[i];
    plot->mark(join_text(lane.row->variant, ", seed ", cell.key.seed, ": ", quality_name(subject), " ",
                         quality_text(subject, cell.quality)),
               [&] {
                 plot->marker({across(cell.quality), y + offset}, view.style(lane.row->variant), 4);
               });
  }
}

}  // namespace

HtmlFigure seed_figure(const ReportView& view) {
  const Subject& subject = view.results.subject;
  HtmlFigure figure{.id = view.id + "-seeds",
                    .title = seed_finding(view.results, view.rows),
                    .caption = "One marker for each trained model; the upright line is the mean of its seeds." +
                               grey_caption(view.rows),
                    .svg = {},
                    .data = {}};
  const std::vector<Lane> lanes = lanes_of(view);
  if (lanes.empty()) return figure;
  std::vector<double> values;
  for (const Lane& lane : lanes) {
    for (const Cell* cell : lane.cells) values.push_back(cell->quality);
  }
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const bool shows_chance =
      subject.chance && *most - *least > kLeastShare * (*most - std::min(*subject.chance, *least));
  if (shows_chance) values.push_back(*subject.chance);
  const double bottom = kTop + kLane * static_cast<double>(lanes.size());
  SvgPlot plot(bottom + 50, {kNameColumn, kTop, kRight, bottom});
  const Scale across = fitted_scale(values, false, kNameColumn, kRight);
  const bool lower = subject.direction == Direction::kLowerIsBetter;
  plot.x_axis(across, quality_name(subject) + (lower ? " (left is better)" : " (right is better)"));
  if (shows_chance) {
    plot.segment({across(*subject.chance), kTop}, {across(*subject.chance), bottom}, "zero");
    plot.text({across(*subject.chance) + 4, kTop - 6}, "guessing", "tick");
  }
  for (size_t i = 0; i < lanes.size(); ++i) {
    const double y = kTop + kLane * (static_cast<double>(i) + 0.5);
    plot.mark(lane_text(subject, lanes[i]), [&] { draw_lane(&plot, view, lanes[i], across, y); });
  }
  figure.svg = plot.svg(figure.id, figure.title, figure.caption);
  figure.data = seed_data(view, lanes, figure.title);
  return figure;
}

}  // namespace headshare
