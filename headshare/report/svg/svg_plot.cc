#include "headshare/report/svg/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "headshare/base/strings/visible.h"

namespace headshare {
namespace {

constexpr int kMarkers = 10;
constexpr int kTicks = 5;  // of an axis, about
// Neighbours in colour are apart in dashes.
constexpr std::array<const char*, kMarkers> kDashes = {"",    "7 3", "2 3",     "9 3 2 3", "",
                                                       "7 3", "2 3", "9 3 2 3", "",        "7 3"};

// The eleventh series has the first one's colour and the second one's shape, and so on: a hundred differ.
std::string colour_of(SeriesStyle style) {
  return fmt::format("s{}{}", style.index % kMarkers, style.grey ? " grey" : "");
}
int shape_of(SeriesStyle style) { return (style.index + style.index / kMarkers) % kMarkers; }

std::string star(double x, double y, double r) {
  std::string points;
  for (int i = 0; i < 10; ++i) {
    const double radius = i % 2 == 0 ? 1.35 * r : 0.6 * r;
    const double angle = M_PI * (i / 5.0 - 0.5);
    points += fmt::format("{:.1f},{:.1f} ", x + radius * std::cos(angle), y + radius * std::sin(angle));
  }
  points.pop_back();
  return points;
}

std::string polygon(const std::string& points, const std::string& css) {
  return fmt::format("<polygon class=\"{}\" points=\"{}\"/>", css, points);
}

// Returns one of ten shapes, filled, hollow and crossed, which differ without their colours, too.
std::string shape(double x, double y, double r, SeriesStyle style) {
  const std::string full = "m " + colour_of(style);
  const std::string hollow = full + " h";
  switch (shape_of(style)) {
    case 0:
      return fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"/>", full, x, y, r);
    case 1:
      return polygon(fmt::format("{0:.1f},{1:.1f} {2:.1f},{1:.1f} {2:.1f},{3:.1f} {0:.1f},{3:.1f}", x - .9 * r,
                                 y - .9 * r, x + .9 * r, y + .9 * r),
                     full);
    case 2:
      return polygon(fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}", x, y - 1.3 * r, x + 1.3 * r,
                                 y, x, y + 1.3 * r, x - 1.3 * r, y),
                     full);
    case 3:
      return fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"/>", hollow, x, y, r);
    case 4:
      return polygon(fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}", x, y - 1.2 * r, x + 1.15 * r, y + .9 * r,
                                 x - 1.15 * r, y + .9 * r),
                     full);
    case 5:
      return polygon(fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}", x, y + 1.2 * r, x + 1.15 * r, y - .9 * r,
                                 x - 1.15 * r, y - .9 * r),
                     full);
    case 6:
      return polygon(fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}", x, y - 1.7 * r, x + 1.7 * r,
                                 y, x, y + 1.7 * r, x - 1.7 * r, y),
                     hollow);
    case 7:
      return fmt::format("<path class=\"{} x\" d=\"M{:.1f} {:.1f}h{:.1f}M{:.1f} {:.1f}v{:.1f}\"/>", full, x - 1.2 * r,
                         y, 2.4 * r, x, y - 1.2 * r, 2.4 * r);
    case 8:
      return fmt::format("<path class=\"{} x\" d=\"M{:.1f} {:.1f}l{:.1f} {:.1f}m0 {:.1f}l{:.1f} {:.1f}\"/>", full,
                         x - r, y - r, 2 * r, 2 * r, -2 * r, -2 * r, 2 * r);
    default:
      return polygon(star(x, y, r), full);
  }
}

// Tells whether labels in the middle below their ticks stay clear of their neighbours'.
bool have_room(const Scale& scale, const std::vector<Tick>& ticks) {
  for (size_t i = 1; i < ticks.size(); ++i) {
    const double needed = (text_width(ticks[i - 1].label) + text_width(ticks[i].label)) / 2;
    if (scale(ticks[i].value) - scale(ticks[i - 1].value) < needed) return false;
  }
  return true;
}

// Returns every second tick, with 0 among them where that leaves two.
std::vector<Tick> every_second(const std::vector<Tick>& ticks) {
  const auto zero = std::find_if(ticks.begin(), ticks.end(), [](const Tick& tick) { return tick.value == 0; });
  size_t first = zero == ticks.end() ? 0 : static_cast<size_t>(zero - ticks.begin()) % 2;
  if (first + 2 >= ticks.size()) first = 0;
  std::vector<Tick> kept;
  for (size_t i = first; i < ticks.size(); i += 2) kept.push_back(ticks[i]);
  return kept;
}

// Returns fewer ticks where labels would touch; two at least, since one gives no scale.
std::vector<Tick> ticks_below(const Scale& scale) {
  std::vector<Tick> ticks = round_ticks(scale, kTicks);
  for (int count = kTicks - 1; count >= 2 && !have_room(scale, ticks); --count) {
    std::vector<Tick> fewer = round_ticks(scale, count);
    if (fewer.size() >= 2) ticks = std::move(fewer);
  }
  while (ticks.size() > 2 && !have_room(scale, ticks)) ticks = every_second(ticks);
  return ticks;
}

}  // namespace

std::string escape_html(const std::string& text) {
  std::string made;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        made += "&amp;";
        break;
      case '<':
        made += "&lt;";
        break;
      case '>':
        made += "&gt;";
        break;
      case '"':
        made += "&quot;";
        break;
      case '\'':
        made += "&#39;";
        break;
      default:
        made += c;
    }
  }
  return made;
}

SvgPlot::SvgPlot(double height, Box frame) : height_(height), frame_(frame) {}

void SvgPlot::x_axis(const Scale& scale, const std::string& label) {
  for (const Tick& tick : ticks_below(scale)) {
    const double x = scale(tick.value);
    segment({x, frame_.top}, {x, frame_.bottom}, "grid");
    text({x, frame_.bottom + 16}, tick.label, "tick", "middle");
  }
  segment({frame_.left, frame_.bottom}, {frame_.right, frame_.bottom}, "axis");
  x_name(frame_.bottom + 36, label);
}

void SvgPlot::x_name(double y, const std::string& label) {
  const std::string shown = abbreviated(label, 60);
  const double half = text_width(shown) / 2;
  const double wished = (frame_.left + frame_.right) / 2;
  text({std::clamp(wished, std::min(half, kWidth / 2), std::max(kWidth - half, kWidth / 2)), y}, shown, "label",
       "middle");
}

void SvgPlot::y_axis(const Scale& scale, const std::string& label) {
  for (const Tick& tick : round_ticks(scale, kTicks)) {
    const double y = scale(tick.value);
    segment({frame_.left, y}, {frame_.right, y}, "grid");
    text({frame_.left - 8, y + 4}, tick.label, "tick", "end");
  }
  // The name stands above the axis, level: that is easier to read than a line on its side.
  text({4, frame_.top - 14}, abbreviated(label, 60), "label");
}

void SvgPlot::mark(const std::string& text, const std::function<void()>& draw) {
  const size_t begin = body_.size();
  ++depth_;
  draw();
  --depth_;
  const bool has_marks = body_.find("<g class=\"mark\"", begin) != std::string::npos;
  body_.insert(begin,
               fmt::format("<g class=\"mark\" tabindex=\"{0}\" role=\"{1}\" aria-label=\"{2}\"><title>{2}</title>\n",
                           depth_ == 0 ? 0 : -1, has_marks ? "group" : "img", escape_html(text)));
  body_ += "</g>\n";
}

void SvgPlot::hit(const Box& box) {
  body_ += fmt::format("<rect class=\"hit\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n", box.left,
                       box.top, box.right - box.left, box.bottom - box.top);
}

void SvgPlot::line(const std::vector<PlotPoint>& points, SeriesStyle style, bool faint) {
  if (points.size() < 2) return;
  std::string list;
  for (const PlotPoint& point : points) list += fmt::format("{:.1f},{:.1f} ", point.x, point.y);
  list.pop_back();
  const char* pattern = kDashes[static_cast<size_t>(shape_of(style))];
  const std::string dashes = faint || *pattern == '\0' ? "" : fmt::format(" stroke-dasharray=\"{}\"", pattern);
  // A nested <svg> clips what leaves the frame, without an id for a clip path.
  body_ += fmt::format(
      "<svg x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"{2:.1f}\" height=\"{3:.1f}\" "
      "viewBox=\"{0:.1f} {1:.1f} {2:.1f} {3:.1f}\"><polyline class=\"l {4}{5}\"{6} points=\"{7}\"/></svg>\n",
      frame_.left, frame_.top, frame_.right - frame_.left, frame_.bottom - frame_.top, colour_of(style),
      faint ? " faint" : "", dashes, list);
}

void SvgPlot::marker(PlotPoint at, SeriesStyle style, double size) { body_ += shape(at.x, at.y, size, style) + "\n"; }

void SvgPlot::ring(PlotPoint around, double radius) {
  body_ +=
      fmt::format("<circle class=\"ring\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"/>\n", around.x, around.y, radius);
}

void SvgPlot::dot(PlotPoint at, SeriesStyle style) {
  body_ +=
      fmt::format("<circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"/>\n", colour_of(style), at.x, at.y);
}

void SvgPlot::vertical_bar(double x, double y1, double y2, SeriesStyle style, double cap) {
  body_ += fmt::format("<path class=\"e {0}\" d=\"M{1:.1f} {2:.1f}h{5:.1f}m-{4:.1f} 0V{3:.1f}m-{4:.1f} 0h{5:.1f}\"/>\n",
                       colour_of(style), x - cap, y1, y2, cap, 2 * cap);
}

void SvgPlot::cell(const Box& box, const std::string& css, double strength) {
  body_ += fmt::format(
      "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill-opacity=\"{:.2f}\"/>\n",
      css, box.left, box.top, box.right - box.left, box.bottom - box.top, std::clamp(strength, 0.0, 1.0));
}

void SvgPlot::cells(const std::vector<Box>& boxes, const std::string& css, double strength) {
  body_ += fmt::format("<path class=\"{}\" fill-opacity=\"{:.2f}\" d=\"", css, std::clamp(strength, 0.0, 1.0));
  for (const Box& box : boxes) {
    body_ += fmt::format("M{:.1f} {:.1f}H{:.1f}V{:.1f}H{:.1f}z", box.left, box.top, box.right, box.bottom, box.left);
  }
  body_ += "\"/>\n";
}

void SvgPlot::segment(PlotPoint from, PlotPoint to, const std::string& css) {
  body_ += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", css, from.x,
                       from.y, to.x, to.y);
}

void SvgPlot::path(const std::vector<PlotPoint>& points, const std::string& css) {
  std::string list;
  for (const PlotPoint& point : points)
    list += fmt::format("{}{:.1f} {:.1f}", list.empty() ? "M" : "L", point.x, point.y);
  body_ += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", css, list);
}

void SvgPlot::text(PlotPoint at, const std::string& text, const std::string& css, const std::string& anchor) {
  body_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", css, at.x, at.y,
                       anchor == "start" ? "" : fmt::format(" text-anchor=\"{}\"", anchor), escape_html(text));
}

std::string SvgPlot::svg(const std::string& id, const std::string& title, const std::string& description) const {
  return fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"group\" aria-labelledby=\"{2}-t\" "
      "aria-describedby=\"{2}-d\">"
      "<title id=\"{2}-t\">{3}</title><desc id=\"{2}-d\">{4}</desc>\n{5}</svg>\n",
      kWidth, height_, id, escape_html(title), escape_html(description), body_);
}

std::string SvgPlot::key(SeriesStyle style) {
  return "<svg class=\"key\" viewBox=\"0 0 18 18\" aria-hidden=\"true\">" +
         shape(9, 9, shape_of(style) == 6 ? 4 : 5, style) + "</svg>";
}

}  // namespace headshare
