#include "headshare/report/svg/svg_labels.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

namespace headshare {
namespace {

constexpr double kMarker = 7;     // half the side of the square a point takes
constexpr double kLineFrom = 14;  // distance from which a line leads to the point
constexpr double kPadding = 2;
constexpr int kRounds = 3;

Box square(double x, double y) { return {x - kMarker, y - kMarker, x + kMarker, y + kMarker}; }

// Returns a label's place whose box touches the circle of `distance` around the point, at one of 16 angles.
PlacedLabel candidate(const LabelRequest& request, double width, int angle, double distance) {
  const double radians = angle * M_PI / 8;
  const double dx = std::cos(radians);
  const double dy = std::sin(radians);
  // The middle of the box lies half its extent farther out in the same direction.
  const double x = request.x + dx * (distance + width / 2);
  const double y = request.y + dy * (distance + kLabelHeight / 2);
  const Box box{x - width / 2, y - kLabelHeight / 2, x + width / 2, y + kLabelHeight / 2};
  PlacedLabel label{.x = box.left + kPadding, .y = box.bottom - 3, .away = distance >= kLineFrom, .box = box};
  if (box.right < request.x) {
    label.anchor = "end";
    label.x = box.right - kPadding;
  } else if (box.left < request.x) {
    label.anchor = "middle";
    label.x = x;
  }
  return label;
}

double outside(const Box& box, const Box& frame) {
  return std::max(0.0, frame.left - box.left) + std::max(0.0, box.right - frame.right) +
         std::max(0.0, frame.top - box.top) + std::max(0.0, box.bottom - frame.bottom);
}

class Placer {
 public:
  Placer(const std::vector<LabelRequest>& requests, const std::vector<Box>& obstacles, const Box& frame)
      : requests_(requests), obstacles_(obstacles), frame_(frame), placed_(requests.size()), there_(requests.size()) {
    for (const LabelRequest& request : requests) points_.push_back(square(request.x, request.y));
  }

  std::vector<PlacedLabel> place() {
    for (int round = 0; round < kRounds; ++round) {
      for (size_t i = 0; i < requests_.size(); ++i) place_one(i);
    }
    return placed_;
  }

 private:
  void place_one(size_t i) {
    const double width = text_width(requests_[i].text);
    double least = INFINITY;
    for (const double distance : {8.0, 18.0, 32.0, 50.0}) {
      for (int angle = 0; angle < 16; ++angle) {
        const PlacedLabel place = candidate(requests_[i], width, angle, distance);
        const double cost = cost_of(i, place, angle, distance);
        if (cost < least) {
          least = cost;
          placed_[i] = place;
        }
      }
    }
    there_[i] = true;
  }

  double cost_of(size_t i, const PlacedLabel& place, int angle, double distance) const {
    // A name is looked for to the right first; then left; above and below last.
    double cost =
        0.6 * (distance - 8) + 1.5 * std::abs(std::sin(angle * M_PI / 8)) + (std::cos(angle * M_PI / 8) < -0.1);
    cost += 50 * outside(place.box, frame_);
    for (const Box& point : points_) cost += 1.2 * place.box.overlap(point);
    for (const Box& obstacle : obstacles_) cost += 0.4 * place.box.overlap(obstacle);
    for (size_t j = 0; j < placed_.size(); ++j) {
      if (j != i && there_[j]) cost += 2 * place.box.overlap(placed_[j].box);
    }
    return cost;
  }

  const std::vector<LabelRequest>& requests_;
  const std::vector<Box>& obstacles_;
  Box frame_;
  std::vector<Box> points_;
  std::vector<PlacedLabel> placed_;
  std::vector<bool> there_;
};

}  // namespace

double Box::overlap(const Box& other) const {
  const double width = std::min(right, other.right) - std::max(left, other.left);
  const double height = std::min(bottom, other.bottom) - std::max(top, other.top);
  return width > 0 && height > 0 ? width * height : 0;
}

double text_width(const std::string& text) {
  double width = 2 * kPadding;
  for (const char c : text) {
    if ((c & 0xC0) == 0x80) continue;
    const std::string_view letter(&c, 1);
    width += std::string_view("mwMW").find(letter) != std::string_view::npos         ? 12.7
             : std::string_view("iljtfr.,' ").find(letter) != std::string_view::npos ? 5.2
                                                                                     : 8.2;
  }
  return width;
}

std::vector<PlacedLabel> place_labels(const std::vector<LabelRequest>& requests, const std::vector<Box>& obstacles,
                                      const Box& frame) {
  return Placer(requests, obstacles, frame).place();
}

std::vector<double> spread(const std::vector<double>& wished, double gap, double low, double high) {
  std::vector<size_t> order(wished.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return wished[a] < wished[b]; });
  // Neighbours that are too near become a group around their mean; groups that meet become one.
  struct Group {
    double middle;
    size_t count;
  };
  std::vector<Group> groups;
  const auto half = [gap](const Group& g) { return gap * static_cast<double>(g.count) / 2; };
  for (const size_t i : order) {
    Group group{wished[i], 1};
    while (true) {
      group.middle = std::clamp(group.middle, low + half(group), std::max(low + half(group), high - half(group)));
      if (groups.empty() || groups.back().middle + half(groups.back()) <= group.middle - half(group)) break;
      const Group& last = groups.back();
      const auto total = static_cast<double>(last.count + group.count);
      group = {
          (last.middle * static_cast<double>(last.count) + group.middle * static_cast<double>(group.count)) / total,
          last.count + group.count};
      groups.pop_back();
    }
    groups.push_back(group);
  }
  std::vector<double> heights(wished.size());
  size_t at = 0;
  for (const Group& group : groups) {
    for (size_t i = 0; i < group.count; ++i) {
      heights[order[at++]] = group.middle + gap * (static_cast<double>(i) - static_cast<double>(group.count - 1) / 2);
    }
  }
  return heights;
}

}  // namespace headshare
