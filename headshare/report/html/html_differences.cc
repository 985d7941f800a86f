// Draws the figure of differences to the reference.
#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/report/html/html_figures.h"
#include "headshare/report/statistics/comparability.h"
#include "headshare/report/statistics/findings.h"
#include "headshare/report/statistics/verdicts.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

constexpr double kFirstLane = 52;
constexpr double kHalf = kLane / 2;
const Box kColumns{kNameColumn, kFirstLane, 292, 0};  // names to the left, numbers to the right

// The scale has room for half of the intervals. Those that are much wider leave the frame, so that the points do not
// fall together; their numbers stand beside.
Scale difference_scale(const std::vector<const VariantRow*>& rows) {
  std::vector<double> means = {0};
  std::vector<double> ends = {0};
  std::vector<double> widths = {0};
  for (const VariantRow* row : rows) {
    means.push_back(row->against_reference->mean);
    if (const std::optional<Interval> interval = row->against_reference->interval()) {
      ends.insert(ends.end(), {interval->low, interval->high});
      widths.push_back(half_width(*row));
    }
  }
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  std::nth_element(widths.begin(), widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2), widths.end());
  const double most = std::max({1.5 * (*high - *low), 1.05 * widths[widths.size() / 2], 1e-9});
  for (double& end : ends) end = std::clamp(end, *low - most, *high + most);
  ends.insert(ends.end(), means.begin(), means.end());
  return fitted_scale(ends, false, kColumns.left, kColumns.right);
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

// Writes real minus signs, as in tables.
std::string shown(std::string number) {
  for (size_t at = number.find('-'); at != std::string::npos; at = number.find('-', at)) number.replace(at, 1, "−");
  return number;
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

std::string value_text(const ReportView& view, const VariantRow& row) {
  const Difference& d = *row.against_reference;
  const std::string interval = difference_interval_text(view.results.subject, d.interval());
  return join_text(row.variant, ": ", difference_heading(view.results), " ", difference_text(view.results.subject, row),
                   interval.empty() ? ", no interval" : ", 95% interval " + interval, ", ", plural(d.seeds, "seed"));
}

void draw_row(SvgPlot* plot, const ReportView& view, const VariantRow& row, const Scale& across, double y) {
  const Subject& subject = view.results.subject;
  const Difference& d = *row.against_reference;
  plot->hit({0, y - kHalf, SvgPlot::kWidth, y + kHalf});
  plot->text({kColumns.left - 10, y + 4}, view.name(row.variant), "name", "end");
  const std::optional<Interval> interval = d.interval();
  if (interval) draw_interval(plot, across, *interval, y);
  plot->marker({across(d.mean), y}, view.style(row.variant), 4.5);
  const std::string number = shown(difference_text(subject, row));
  plot->text({SvgPlot::kWidth - 4, interval ? y - 2 : y + 4}, number, "figure", "end");
  if (interval)
    plot->text({SvgPlot::kWidth - 4, y + 10}, shown(difference_interval_text(subject, interval)), "small", "end");
}

std::string caption_of(const ReportView& view, const std::vector<const VariantRow*>& rows, const Scale& across) {
  const Verdicts verdicts = verdicts_of(view.results.subject, view.rows);
  std::string text = join_text("Mean difference in ", compared_name(view.results.subject), " to ",
                               view.results.references.quality, ", paired by seed. ");
  if (verdicts.judged() == 0) return join_text(text, "No intervals below ", kFewestToJudge, " seeds.");
  text +=
      verdicts.judged() > 1 ? "Lines: 95% intervals that hold all at once (Bonferroni). " : "Line: the 95% interval. ";
  text += "An interval that contains 0 shows no significant difference.";
  const bool beyond = std::any_of(rows.begin(), rows.end(), [&](const VariantRow* row) {
    const std::optional<Interval> interval = row->against_reference->interval();
    return interval && !(across.holds(interval->low) && across.holds(interval->high));
  });
  return beyond ? text + " An arrow marks an interval that goes on beyond the axis; its ends stand on the right."
                : text;
}

}  // namespace

HtmlFigure difference_figure(const ReportView& view) {
  HtmlFigure figure{.id = view.id + "-differences", .title = {}, .caption = {}, .svg = {}, .data = {}};
  std::vector<const VariantRow*> rows;
  for (const VariantRow& row : view.rows) {
    if (row.against_reference && row.trained()) rows.push_back(&row);
  }
  if (rows.empty()) return figure;
  const Scale across = difference_scale(rows);
  figure.title = difference_finding(view.results, view.rows);
  figure.caption = caption_of(view, rows, across) + grey_caption(view.rows);
  const double bottom = kFirstLane + kLane * static_cast<double>(rows.size());
  SvgPlot plot(bottom + 50, {kColumns.left, kFirstLane, kColumns.right, bottom});
  plot.x_axis(across, difference_heading(view.results));
  plot.segment({across(0), kFirstLane}, {across(0), bottom}, "zero");
  const bool lower = less_is_better(view.results.subject);
  plot.text({across(0) - 6, kFirstLane - 8}, lower ? "← better" : "← worse", "tick", "end");
  plot.text({across(0) + 6, kFirstLane - 8}, lower ? "worse →" : "better →", "tick");
  for (size_t i = 0; i < rows.size(); ++i) {
    const double y = kFirstLane + kLane * (static_cast<double>(i) + 0.5);
    plot.mark(value_text(view, *rows[i]), [&] { draw_row(&plot, view, *rows[i], across, y); });
  }
  figure.svg = plot.svg(figure.id, figure.title, figure.caption);
  figure.data = difference_data(view, rows, figure.title);
  return figure;
}

}  // namespace headshare
