// Draws a figure as static SVG, to stand inside an HTML page that holds its colours (docs/design/010-report.md).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "headshare/report/svg/svg_labels.h"
#include "headshare/report/svg/svg_scale.h"

namespace headshare {

// Makes text for HTML and SVG: what is markup, and control characters, become text.
std::string escape_html(const std::string& text);

// This says how a scheme is drawn: colour (class "s0" to "s9"), marker and dashes, the same in every figure. Schemes
// that are not known by name get what others leave free, or share.
struct SeriesStyle {
  int index = 0;
  bool grey = false;  // keeps its marker and dashes, not its colour: what stands there is not to be relied on
};

struct PlotPoint {
  double x = 0;
  double y = 0;
};

// Lengths are units of the view box. It is so narrow that its type can be read on a telephone too.
class SvgPlot {
 public:
  SvgPlot(double height, Box frame);  // `frame`: what the axes enclose

  static constexpr double kWidth = 420;
  const Box& frame() const { return frame_; }

  // Draws lines across at the ticks, labels, the name of the axis. Below, there are only so many ticks that no label
  // touches its neighbour.
  void x_axis(const Scale& scale, const std::string& label);
  void x_name(double y, const std::string& label);  // the name alone: below the frame's middle, inside the figure
  void y_axis(const Scale& scale, const std::string& label);

  // Makes what `draw` draws one thing with a value: `text` is its name for screen readers and shows when it is pointed
  // at or focused (page.js; without it, the browser's own tooltip). It can be reached by Tab; a mark inside another one
  // by the arrow keys.
  void mark(const std::string& text, const std::function<void()>& draw);
  void hit(const Box& box);  // where a mark can be pointed at, beside what can be seen of it

  void line(const std::vector<PlotPoint>& points, SeriesStyle style, bool faint = false);  // inside the frame only
  void marker(PlotPoint at, SeriesStyle style, double size = 5);
  void ring(PlotPoint around, double radius);
  void dot(PlotPoint at, SeriesStyle style);  // shows only when its mark does
  // Draws an error bar with caps. Where several stand at one x, caps of different widths show where each ends.
  void vertical_bar(double x, double y1, double y2, SeriesStyle style, double cap = 3);
  void cell(const Box& box, const std::string& css, double strength);  // of a heat map; strength from 0 to 1
  void cells(const std::vector<Box>& boxes, const std::string& css, double strength);  // many alike, as one path
  void segment(PlotPoint from, PlotPoint to, const std::string& css);
  void path(const std::vector<PlotPoint>& points, const std::string& css);
  void text(PlotPoint at, const std::string& text, const std::string& css, const std::string& anchor = "start");

  // Returns the whole element. The title is its short name, the description what it shows, for screen readers; `id`
  // makes them unique in the page.
  std::string svg(const std::string& id, const std::string& title, const std::string& description) const;

  // Returns a marker alone, as a key in tables.
  static std::string key(SeriesStyle style);

 private:
  double height_;
  Box frame_;
  std::string body_;
  int depth_ = 0;  // of marks
};

}  // namespace headshare
