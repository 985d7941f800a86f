// A figure as static SVG, to stand inside an HTML page that holds its colours (docs/design/010-report.md).
#pragma once

#include <string>
#include <vector>

#include "headshare/report/svg/svg_labels.h"
#include "headshare/report/svg/svg_scale.h"

namespace headshare {

// Text for HTML and SVG: what is markup, and control characters, become text.
std::string escape_html(const std::string& text);

// How a scheme is drawn: colour (class "s0" to "s9"), marker and dashes, the same in every figure. Schemes
// that are not known by name get what others leave free, or share.
struct SeriesStyle {
  int index = 0;
};

struct PlotPoint {
  double x = 0;
  double y = 0;
};

// Lengths are units of the view box: 540 wide, so that the type has its size in half of a page.
class SvgPlot {
 public:
  SvgPlot(double height, Box frame);  // `frame`: what the axes enclose

  static constexpr double kWidth = 540;
  const Box& frame() const { return frame_; }

  // Lines across at the ticks, labels, the name of the axis.
  void x_axis(const Scale& scale, const std::string& label);
  void y_axis(const Scale& scale, const std::string& label);

  void line(const std::vector<PlotPoint>& points, SeriesStyle style, bool faint = false);  // inside the frame only
  void marker(PlotPoint at, SeriesStyle style, double size = 5);
  void vertical_bar(double x, double y1, double y2, SeriesStyle style);  // an error bar with caps
  void segment(PlotPoint from, PlotPoint to, const std::string& css);
  void text(PlotPoint at, const std::string& text, const std::string& css, const std::string& anchor = "start");

  // The whole element. The title is its short name, the description what it shows, for screen readers;
  // `id` makes them unique in the page.
  std::string svg(const std::string& id, const std::string& title, const std::string& description) const;

  // A marker alone, as a key in tables.
  static std::string key(SeriesStyle style);

 private:
  double height_;
  Box frame_;
  std::string body_;
};

}  // namespace headshare
