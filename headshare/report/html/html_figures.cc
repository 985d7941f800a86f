#include "headshare/report/html/html_figures.h"

#include <algorithm>
#include <array>

#include "headshare/base/error.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

// A variant that is named after a scheme keeps that scheme's colour and marker in every report.
#define HS_SCHEME(name) #name,
constexpr std::array kKnown = {
#include "headshare/attention/schemes.inc"
};
#undef HS_SCHEME

}  // namespace

std::optional<SeriesStyle> scheme_style(const std::string& scheme) {
  const auto known = std::find(kKnown.begin(), kKnown.end(), scheme);
  if (known == kKnown.end()) return std::nullopt;
  return SeriesStyle{static_cast<int>(known - kKnown.begin())};
}

namespace {

// Returns the style alone, whatever is known of its seeds.
SeriesStyle plain_style(const std::vector<VariantRow>& rows, const std::string& variant) {
  const auto index_of = [](const std::string& name) {
    return static_cast<int>(std::find(kKnown.begin(), kKnown.end(), name) - kKnown.begin());
  };
  if (const std::optional<SeriesStyle> known = scheme_style(variant)) return *known;
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

const VariantRow* row_of(const std::vector<VariantRow>& rows, const std::string& variant) {
  const auto same = [&](const VariantRow& row) { return row.variant == variant; };
  const auto found = std::find_if(rows.begin(), rows.end(), same);
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

SeriesStyle ReportView::style(const std::string& variant) const {
  SeriesStyle made = plain_style(rows, variant);
  const VariantRow* row = row_of(rows, variant);
  made.grey = row != nullptr && lacks_seeds(row->best);
  return made;
}

std::string ReportView::name(const std::string& variant) const {
  const VariantRow* row = row_of(rows, variant);
  if (row == nullptr || !lacks_seeds(row->best)) return name_in_figure(variant);
  constexpr size_t kRoom = 10;  // beside the number of seeds
  return join_text(name_within(variant, kRoom), " ", row->best.seeds.size(), "/", row->best.planned);
}

std::string ReportView::key(const std::string& variant) const {
  return SvgPlot::key(style(variant)) + "<span class=\"scheme\">" + escape_html(variant) + "</span>";
}

std::vector<double> name_heights(const std::vector<PlotPoint>& ends) {
  std::vector<double> wished;
  for (const PlotPoint& end : ends) wished.push_back(end.y);
  return spread(wished, 16, kLineFrame.top, kLineFrame.bottom);
}

void name_line_end(SvgPlot* plot, SeriesStyle style, const std::string& name, PlotPoint end, double height) {
  plot->segment({end.x + 3, end.y}, {kLineNames - 4, height}, "leader");
  plot->marker({kLineNames + 4, height}, style, 4);
  plot->text({kLineNames + 14, height + 4}, name, "name");
}

void name_line_end(SvgPlot* plot, const ReportView& view, const std::string& name, PlotPoint end, double height) {
  name_line_end(plot, view.style(name), view.name(name), end, height);
}

std::string grey_caption(const std::vector<VariantRow>& rows) {
  const bool any = std::any_of(rows.begin(), rows.end(), [](const VariantRow& row) { return lacks_seeds(row.best); });
  return any ? " Grey: fewer seeds than planned." : "";
}

std::string some_of(const Results& results, size_t some, size_t all) {
  const std::string what = noun(results);
  if (all == 1) return "The " + what + " has its";
  if (some < all) return join_text(some, " of ", all, " ", what, "s ", some == 1 ? "has its" : "have their");
  return join_text(all == 2 ? "Both " : join_text("All ", all, " "), what, "s have their");
}

std::vector<HtmlFigure> more_figures(const ReportView& view) {
  std::vector<HtmlFigure> figures = {difference_figure(view), curve_figure(view), seed_figure(view),
                                     sweep_figure(view)};
  std::erase_if(figures, [](const HtmlFigure& figure) { return figure.svg.empty(); });
  return figures;
}

}  // namespace headshare
