#include "headshare/report/svg/svg_plot.h"

#include <gmock/gmock.h>

#include <cmath>

#include "headshare/base/strings/visible.h"

namespace headshare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> made;
  for (const Tick& tick : ticks) made.push_back(tick.label);
  return made;
}

TEST(ScaleTest, MapsEndsToEnds) {
  const Scale up{.low = 2, .high = 6, .from = 100, .to = 20};
  EXPECT_DOUBLE_EQ(up(2), 100);
  EXPECT_DOUBLE_EQ(up(4), 60);
  const Scale logarithmic{.low = 1, .high = 100, .from = 0, .to = 1, .logarithmic = true};
  EXPECT_DOUBLE_EQ(logarithmic(10), 0.5);
}

TEST(ScaleTest, FitsAnyValues) {
  const Scale wide = fitted_scale({1, 3}, false, 0, 1);
  EXPECT_LT(wide.low, 1);
  EXPECT_GT(wide.high, 3);
  EXPECT_FALSE(fitted_scale({0, 3}, true, 0, 1).logarithmic);  // 0 has no logarithm
  for (const std::vector<double>& values :
       {std::vector<double>{}, {5}, {5, 5}, {0}, {-1e30, 1e30}, {1e30, 1e30}, {1e-30, 1e-29}}) {
    for (const bool logarithmic : {false, true}) {
      const Scale scale = fitted_scale(values, logarithmic, 0, 1);
      EXPECT_LT(scale.low, scale.high);
      EXPECT_FALSE(round_ticks(scale, 5).empty());
      EXPECT_LT(round_ticks(scale, 5).size(), 100u);
      for (const double value : values) {
        EXPECT_GE(scale(value), 0);
        EXPECT_LE(scale(value), 1);
      }
    }
  }
}

TEST(TicksTest, AreRound) {
  EXPECT_THAT(labels(round_ticks({.low = 0, .high = 1000}, 5)), ElementsAre("0", "200", "400", "600", "800", "1000"));
  EXPECT_THAT(labels(round_ticks({.low = -0.03, .high = 0.07}, 5)),
              ElementsAre("−0.02", "0.00", "0.02", "0.04", "0.06"));
  EXPECT_THAT(labels(round_ticks({.low = 190e3, .high = 610e3}, 5)),
              ElementsAre("200k", "300k", "400k", "500k", "600k"));
  EXPECT_THAT(labels(round_ticks({.low = 4.55, .high = 4.71}, 4)), ElementsAre("4.55", "4.60", "4.65", "4.70"));
  EXPECT_THAT(labels(round_ticks({.low = 800, .high = 2e6, .logarithmic = true}, 5)),
              ElementsAre("1k", "10k", "100k", "1M"));
  EXPECT_THAT(labels(round_ticks({.low = 900, .high = 6500, .logarithmic = true}, 5)), ElementsAre("1k", "2k", "5k"));
}

Box text_box(const LabelRequest& request, const PlacedLabel& label) {
  const double width = text_width(request.text);
  const std::string anchor = label.anchor;
  const double left = anchor == "end" ? label.x - width : anchor == "middle" ? label.x - width / 2 : label.x;
  return {left, label.y - 10, left + width - 4, label.y + 3};
}

// The names are as crowded as results are: two at one point, columns whose points are nearer than lines of text.
TEST(LabelsTest, NoneCoversAnother) {
  const std::vector<LabelRequest> requests = {{380, 250, "mha"},
                                              {380, 250, "el_lossless"},
                                              {80, 60, "sha"},
                                              {82, 100, "mhe_add"},
                                              {82, 118, "mhe_mul"},
                                              {300, 230, "skv"},
                                              {306, 236, "collaborative"},
                                              {200, 220, "mqa"},
                                              {210, 226, "gqa"},
                                              {190, 235, "el_shared"},
                                              {400, 100, "a"},
                                              {400, 108, "b"},
                                              {400, 116, "c"}};
  const Box frame{54, 40, 400, 290};
  const std::vector<PlacedLabel> placed = place_labels(requests, {{78, 40, 86, 140}}, frame);
  ASSERT_EQ(placed.size(), requests.size());
  for (size_t i = 0; i < placed.size(); ++i) {
    const Box box = text_box(requests[i], placed[i]);
    EXPECT_GE(box.left, frame.left) << requests[i].text;
    EXPECT_LE(box.right, frame.right) << requests[i].text;
    for (size_t j = 0; j < i; ++j) EXPECT_EQ(placed[i].box.overlap(placed[j].box), 0) << i << " " << j;
    for (const LabelRequest& other : requests) {
      EXPECT_LT(box.overlap({other.x - 5, other.y - 5, other.x + 5, other.y + 5}), 20) << requests[i].text;
    }
  }
}

TEST(LabelsTest, SpreadKeepsOrderDistanceAndBounds) {
  EXPECT_THAT(spread({10, 100, 50}, 16, 0, 200), ElementsAre(10, 100, 50));
  EXPECT_THAT(spread({50, 50, 50}, 16, 0, 200), ElementsAre(34, 50, 66));
  EXPECT_THAT(spread({195, 196}, 16, 0, 200), ElementsAre(176, 192));
  EXPECT_THAT(spread({0, 10, 40}, 16, 0, 200), ElementsAre(8, 24, 40));
  EXPECT_TRUE(spread({}, 16, 0, 200).empty());
}

// A mark inside another one is reached by the arrow keys alone.
TEST(SvgPlotTest, MarksHaveTheirValue) {
  SvgPlot plot(100, {0, 0, 10, 10});
  plot.mark("mha: <1>", [&] {
    plot.marker({1, 1}, {0});
    plot.mark("seed 0: 1", [&] { plot.marker({2, 2}, {0}); });
  });
  plot.mark("mqa: 2", [&] { plot.marker({3, 3}, {1}); });
  const std::string svg = plot.svg("id", "title", "desc");
  EXPECT_THAT(svg, HasSubstr("<g class=\"mark\" tabindex=\"0\" role=\"group\" aria-label=\"mha: "
                             "&lt;1&gt;\"><title>mha: &lt;1&gt;</title>"));
  EXPECT_THAT(
      svg,
      HasSubstr("<g class=\"mark\" tabindex=\"-1\" role=\"img\" aria-label=\"seed 0: 1\"><title>seed 0: 1</title>"));
  EXPECT_THAT(svg,
              HasSubstr("<g class=\"mark\" tabindex=\"0\" role=\"img\" aria-label=\"mqa: 2\"><title>mqa: 2</title>"));
}

// Returns the labels below the axis, and checks that each stays clear of the next.
std::vector<std::string> labels_below(const std::vector<double>& values) {
  constexpr double kLeft = 126;
  constexpr double kRight = 292;
  const Scale scale = fitted_scale(values, false, kLeft, kRight);
  SvgPlot plot(100, {kLeft, 0, kRight, 50});
  plot.x_axis(scale, "");
  std::string svg = plot.svg("id", "", "");
  std::vector<std::string> found;
  double free_from = 0;
  while (true) {
    const size_t at = svg.find("<text class=\"tick\"");
    if (at == std::string::npos) return found;
    svg = svg.substr(at);
    const size_t begin = svg.find('>') + 1;
    found.push_back(svg.substr(begin, svg.find('<', begin) - begin));
    const double x = std::stod(svg.substr(svg.find(" x=\"") + 4));
    const double half = text_width(found.back()) / 2;
    EXPECT_GE(x - half, free_from - 0.1) << found.back();  // places are rounded to 0.1
    free_from = x + half;
    svg = svg.substr(begin);
  }
}

TEST(SvgPlotTest, LabelsBelowTheAxisDoNotTouch) {
  EXPECT_THAT(labels_below({-0.02, 0}), ElementsAre("−0.02", "−0.01", "0.00"));
  EXPECT_THAT(labels_below({-0.00017, 0.00006}), ElementsAre("−0.0001", "0.0000"));
  EXPECT_THAT(labels_below({-0.00005, 0.00003}), ElementsAre("−0.00005", "0.00000"));
  EXPECT_THAT(labels_below({-0.000042, 0.000035}), ElementsAre("−0.00004", "0.00000"));  // no rounder step leaves two
  EXPECT_GE(labels_below({1.000001, 1.000002}).size(), 2u);
  // Labels that have room stay.
  EXPECT_THAT(labels_below({-0.2, 0.1}), ElementsAre("−0.2", "−0.1", "0.0", "0.1"));
  EXPECT_THAT(labels_below({0, 0.85}), ElementsAre("0.0", "0.2", "0.4", "0.6", "0.8"));
}

// The name is in the middle of the frame where it fits there, and always inside the figure.
TEST(SvgPlotTest, NamesOfAxesAreNotCut) {
  for (const std::string& name : {std::string("x"), std::string(40, 'm'), std::string(100, 'i')}) {
    SvgPlot plot(100, {300, 0, 400, 10});
    plot.x_name(50, name);
    const std::string svg = plot.svg("id", "", "");
    const double x = std::stod(svg.substr(svg.find(" x=\"") + 4));
    const double half = std::min(text_width(abbreviated(name, 60)), SvgPlot::kWidth) / 2;
    EXPECT_GE(x - half, -1);
    EXPECT_LE(x + half, SvgPlot::kWidth + 1);
  }
}

TEST(SvgPlotTest, TextIsNeverMarkup) {
  EXPECT_EQ(escape_html("<a href='x'>&\"\x1b\n"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\\x1b ");
  SvgPlot plot(100, {0, 0, 10, 10});
  plot.text({1, 1}, "</svg><script>", "name");
  const std::string svg = plot.svg("id", "<title>", "<desc>");
  EXPECT_THAT(svg, HasSubstr("&lt;/svg&gt;&lt;script&gt;"));
  EXPECT_THAT(svg, HasSubstr("&lt;title&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
}

// A series that is not to be relied on keeps its shape.
TEST(SvgPlotTest, GreyKeepsTheMarker) {
  std::string grey = SvgPlot::key({.index = 4, .grey = true});
  EXPECT_THAT(grey, HasSubstr("class=\"m s4 grey\""));
  grey.erase(grey.find(" grey"), 5);
  EXPECT_EQ(grey, SvgPlot::key({4}));
}

TEST(SvgPlotTest, TenSchemesHaveTenMarkers) {
  for (int i = 0; i < 10; ++i) {
    for (int j = 0; j < i; ++j) EXPECT_NE(SvgPlot::key({i}), SvgPlot::key({j}));
  }
  EXPECT_NE(SvgPlot::key({10}), SvgPlot::key({0}));  // the same colour, another shape
}

}  // namespace
}  // namespace headshare
