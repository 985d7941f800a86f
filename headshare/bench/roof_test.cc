#include "headshare/bench/roof.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace headshare {
namespace {

constexpr RoofKind kKinds[] = {RoofKind::kProduct, RoofKind::kStream};

TEST(Roof, IsTheMostThatAnyWayReachedInItsShortestTurn) {
  const std::vector<RoofWay> ways = {{.work = 200, .run = {}}, {.work = 300, .run = {}}};
  const std::vector<Timing> timings = {{.median_ms = 5, .minimum_ms = 1}, {.median_ms = 2, .minimum_ms = 2}};
  EXPECT_EQ(roof_of(ways, timings), 200'000);
  const Rate rate{.per_second = 75'000, .roof = 150'000};
  EXPECT_EQ(rate.percent(), 50);
  EXPECT_EQ(Rate{}.percent(), 0);
}

TEST(Roof, CountsOperationsOfAProductAndBytesOfStream) {
  const auto works = [](RoofOptions options) {
    options.small = true;
    std::vector<double> found;
    for (const RoofWay& way : roof_ways(options)) found.push_back(way.work);
    return found;
  };
  EXPECT_EQ(works({.kind = RoofKind::kProduct}), std::vector<double>(2, 2.0 * 64 * 64 * 64));  // libtorch's and ours
  EXPECT_EQ(works({.kind = RoofKind::kProduct, .precision = Precision::kBf16}), works({.kind = RoofKind::kProduct}));
  EXPECT_EQ(works({.kind = RoofKind::kStream}), std::vector<double>({2.0 * 4 * 4096, 3.0 * 4 * 4096}));
}

TEST(Roof, EveryWayRunsWhereItIsAsked) {
  std::vector<c10::Device> devices = {c10::Device(c10::kCPU)};
  if (at::hasCUDA()) devices.emplace_back("cuda:0");
  for (const c10::Device& device : devices) {
    for (const RoofKind kind : kKinds) {
      for (const RoofWay& way : roof_ways({.kind = kind, .device = device, .small = true})) {
        const TurnOptions turns{.device = device, .least_rounds = 2, .most_rounds = 2};
        EXPECT_GT(roof_of({way}, take_turns({way.run}, turns)), 0);
      }
    }
  }
}

}  // namespace
}  // namespace headshare
