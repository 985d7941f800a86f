// The figure of differences to the reference.
#include <algorithm>
#include <cmath>

#include "headshare/report/html/html_figures.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

constexpr double kLane = 27;
constexpr double kTop = 52;
const Box kColumns{116, kTop, 450, 0};  // names to the left, numbers to the right

// Intervals that are so wide that all points would fall together leave the frame instead.
Scale difference_scale(const std::vector<const VariantRow*>& rows) {
  std::vector<double> core = {0};
  std::vector<double> all = {0};
  for (const VariantRow* row : rows) {
    const Difference& d = *row->against_reference;
    core.push_back(d.mean);
    all.push_back(d.mean);
    if (const std::optional<Interval> interval = d.interval()) {
      all.insert(all.end(), {interval->low, interval->high});
    }
  }
  const auto [low, high] = std::minmax_element(core.begin(), core.end());
  const double most = 1.5 * std::max(*high - *low, 1e-9);
  for (double& value : all) value = std::clamp(value, *low - most, *high + most);
  return fitted_scale(all, false, kColumns.left, kColumns.right);
}

void draw_interval(SvgPlot* plot, const Scale& across, const Interval& interval, double y) {
  constexpr const char* css = "interval";
  const Box& frame = plot->frame();
  const double left = across(std::max(interval.low, across.low));
  const double right = across(std::min(interval.high, across.high));
  plot->segment({left, y}, {right, y}, css);
  const auto end = [&](double x, bool cut, double inward) {
    if (!cut) return plot->segment({x, y - 5}, {x, y + 5}, css);
    plot->segment({x, y}, {x + inward, y - 4}, css);  // an arrow head: it goes on
    plot->segment({x, y}, {x + inward, y + 4}, css);
  };
  end(left, left <= frame.left, 6);
  end(right, right >= frame.right, -6);
}

std::string difference_data(const ReportView& view, const std::vector<const VariantRow*>& rows,
                            const std::string& caption) {
  HtmlTable table({{.text = noun(view.results), .number = false},
                   {.text = difference_heading(view.results)},
                   {.text = "95% interval"},
                   {.text = "seeds"}});
  for (const VariantRow* row : rows) {
    table.add({{view.key(row->variant)},
               number_cell(difference_text(view.results.subject, *row)),
               number_cell(difference_interval_text(view.results.subject, row->against_reference->interval())),
               number_cell(std::to_string(row->against_reference->seeds))});
  }
  return table.html(caption, /*sortable=*/false);
}

}  // namespace

HtmlFigure difference_figure(const ReportView& view) {
  const Subject& subject = view.results.subject;
  HtmlFigure figure{.id = view.id + "-differences",
                    .title = "Differences to " + view.results.references.quality,
                    .caption =
                        "Paired by seed. With 95% all intervals hold at once (Bonferroni); one that contains 0 "
                        "shows no significant difference.",
                    .svg = {},
                    .data = {}};
  std::vector<const VariantRow*> rows;
  for (const VariantRow& row : view.rows) {
    if (row.against_reference && row.trained()) rows.push_back(&row);
  }
  if (rows.empty()) return figure;
  const Scale across = difference_scale(rows);
  const double bottom = kTop + kLane * static_cast<double>(rows.size());
  SvgPlot plot(bottom + 50, {kColumns.left, kTop, kColumns.right, bottom});
  plot.x_axis(across, difference_heading(view.results));
  plot.segment({across(0), kTop}, {across(0), bottom}, "zero");
  const bool lower = less_is_better(subject);
  plot.text({across(0) - 6, kTop - 8}, lower ? "← better" : "← worse", "tick", "end");
  plot.text({across(0) + 6, kTop - 8}, lower ? "worse →" : "better →", "tick");
  for (size_t i = 0; i < rows.size(); ++i) {
    const double y = kTop + kLane * (static_cast<double>(i) + 0.5);
    const Difference& d = *rows[i]->against_reference;
    plot.text({kColumns.left - 10, y + 4}, shortened(rows[i]->variant, 14), "name", "end");
    if (const std::optional<Interval> interval = d.interval()) draw_interval(&plot, across, *interval, y);
    plot.marker({across(std::clamp(d.mean, across.low, across.high)), y}, view.style(rows[i]->variant), 4.5);
    std::string number = difference_text(subject, *rows[i]);
    if (number.starts_with('-')) number = "−" + number.substr(1);
    plot.text({SvgPlot::kWidth - 14, y + 4}, number, "figure", "end");
  }
  figure.svg = plot.svg(figure.id, figure.title, figure.caption);
  figure.data = difference_data(view, rows, figure.title);
  return figure;
}

}  // namespace headshare
