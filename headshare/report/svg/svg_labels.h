// Decides where names stand beside points and at the ends of lines, so that none covers another.
#pragma once

#include <string>
#include <vector>

namespace headshare {

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;

  double overlap(const Box& other) const;  // the area both cover
};

// This is a name to be placed near its point.
struct LabelRequest {
  double x = 0, y = 0;  // the point
  std::string text;
};

struct PlacedLabel {
  double x = 0, y = 0;           // on its base line
  const char* anchor = "start";  // which part of the text stands at x: the part next to the point
  bool away = false;             // so far from its point that a line should lead there
  Box box;
};

// Returns the width of a text in the figures' type, a little too large rather than too small: the font is the reader's.
double text_width(const std::string& text);
inline constexpr double kLabelHeight = 13;

// Finds for each request a place inside `frame`, near its point and clear of the other labels, all points and
// `obstacles` (error bars, the legend) as far as there is room: each label in turn takes the best of some forty places,
// three times over.
std::vector<PlacedLabel> place_labels(const std::vector<LabelRequest>& requests, const std::vector<Box>& obstacles,
                                      const Box& frame);

// Returns heights for a column of labels: at least `gap` apart, in the same order, as near to the wished heights as
// that allows, within [low, high] if they fit.
std::vector<double> spread(const std::vector<double>& wished, double gap, double low, double high);

}  // namespace headshare
