#include "headshare/bench/timing.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "headshare/base/error.h"

namespace headshare {
namespace {

TEST(Timing, MedianAndMinimum) {
  const Timing odd = summarise({5, 1, 3});
  EXPECT_EQ(odd.median_ms, 3);
  EXPECT_EQ(odd.minimum_ms, 1);
  EXPECT_EQ(odd.repetitions, 3);
  EXPECT_EQ(summarise({4, 1, 2, 100}).median_ms, 3);
  EXPECT_EQ(summarise({7}).median_ms, 7);
  EXPECT_THROW(summarise({}), Error);
}

TEST(Timing, ContendersTakeTurnsInChangingOrder) {
  std::string order;
  const auto says = [&](char c) { return [&order, c] { order += c; }; };
  const TurnOptions options = {.least_rounds = 3, .most_rounds = 3, .seconds = 10, .between = [&] { order += '.'; }};
  const auto timings = take_turns({says('a'), says('b'), says('c')}, options);
  EXPECT_EQ(order,
            ".a.b.c"  // once without being timed
            ".a.b.c.b.c.a.c.a.b");
  ASSERT_EQ(timings.size(), 3U);
  for (const Timing& one : timings) EXPECT_EQ(one.repetitions, 3);
}

// This is a device on which work goes on for some milliseconds after it was started.
class SlowDevice : public c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::PrivateUse1> {
 public:
  void synchronizeDevice(c10::DeviceIndex) const override {
    if (working_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    working_ = false;
  }
  static void start() { working_ = true; }
  static bool works() { return working_; }

 private:
  inline static bool working_ = false;
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, SlowDevice)

TEST(Timing, ATurnLastsUntilTheDeviceIsDone) {
  const auto starts = [] { SlowDevice::start(); };
  const TurnOptions options = {.least_rounds = 2, .most_rounds = 2};
  EXPECT_LT(take_turns({starts}, options)[0].minimum_ms, 5);  // on the CPU nothing is waited for
  TurnOptions on_device = options;
  on_device.device = c10::Device(c10::DeviceType::PrivateUse1, 0);
  const auto nothing = [] { EXPECT_FALSE(SlowDevice::works()); };  // an earlier turn's work would count here
  const std::vector<Timing> timings = take_turns({starts, nothing}, on_device);
  EXPECT_GE(timings[0].minimum_ms, 5);
  EXPECT_LT(timings[1].minimum_ms, 5);
  EXPECT_FALSE(SlowDevice::works());
}

TEST(Timing, LongActionsAreRepeatedLessOften) {
  int runs = 0;
  const auto slow = [&] {
    ++runs;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  const auto timings = take_turns({slow}, {.least_rounds = 2, .most_rounds = 1000, .seconds = 0.001});
  EXPECT_EQ(runs, 3);
  EXPECT_GE(timings[0].minimum_ms, 2);
  EXPECT_THROW(take_turns({slow}, {.least_rounds = 0}), Error);
}

}  // namespace
}  // namespace headshare
