#include "headshare/train/schedule.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr int64_t kWarmup = 3;
constexpr int64_t kTotal = 10;

ScheduleOptions unit(Schedule schedule, double least = 0) {
  return {.schedule = schedule, .learning_rate = 1, .min_learning_rate = least, .warmup_steps = kWarmup};
}

// Checks the rates of steps kWarmup .. kTotal - 1.
void expect_after_warmup(const ScheduleOptions& options, const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const int64_t step = kWarmup + static_cast<int64_t>(i);
    EXPECT_NEAR(learning_rate_at(options, step, kTotal), expected[i], 1e-11) << step;
  }
}

// transformers 5.23.0 gives these rates for 3 warm-up steps of 10 and a peak of 1.
TEST(ScheduleTest, EqualsTransformersAfterWarmup) {
  expect_after_warmup(unit(Schedule::kLinear), {1.0, 0.857142857143, 0.714285714286, 0.571428571429, 0.428571428571,
                                                0.285714285714, 0.142857142857});
  expect_after_warmup(unit(Schedule::kCosine), {1.0, 0.950484433951, 0.811744900929, 0.611260466978, 0.388739533022,
                                                0.188255099071, 0.0495155660488});
  expect_after_warmup(unit(Schedule::kCosine, 0.1), {1.0, 0.955435990556, 0.830570410836, 0.65013442028, 0.44986557972,
                                                     0.269429589164, 0.144564009444});
  expect_after_warmup(unit(Schedule::kInverseSqrt), {1.0, 0.866025403784, 0.774596669241, 0.707106781187,
                                                     0.654653670708, 0.612372435696, 0.57735026919});
  expect_after_warmup(unit(Schedule::kConstant), std::vector<double>(7, 1.0));
  ScheduleOptions wsd = unit(Schedule::kWarmupStableDecay, 0.1);
  wsd.decay_steps = 4;
  expect_after_warmup(wsd, {1.0, 1.0, 1.0, 1.0, 0.775, 0.55, 0.325});
  ScheduleOptions no_warmup = unit(Schedule::kInverseSqrt);
  no_warmup.warmup_steps = 0;
  EXPECT_NEAR(learning_rate_at(no_warmup, 9, kTotal), 0.999550303522, 1e-11);
}

// This is nanoGPT's get_lr, written down again from train.py of the current version.
double nano_gpt(int64_t it, double learning_rate, double min_lr, int64_t warmup_iters, int64_t lr_decay_iters) {
  if (it < warmup_iters) return learning_rate * static_cast<double>(it + 1) / static_cast<double>(warmup_iters + 1);
  if (it > lr_decay_iters) return min_lr;
  const double decay_ratio =
      static_cast<double>(it - warmup_iters) / static_cast<double>(lr_decay_iters - warmup_iters);
  return min_lr + 0.5 * (1.0 + std::cos(std::numbers::pi * decay_ratio)) * (learning_rate - min_lr);
}

TEST(ScheduleTest, CosineIsNanoGpts) {
  const ScheduleOptions options{.learning_rate = 6e-4, .min_learning_rate = 6e-5, .warmup_steps = 20};
  for (int64_t step = 0; step < 130; ++step) {
    EXPECT_NEAR(learning_rate_at(options, step, 100), nano_gpt(step, 6e-4, 6e-5, 20, 100), 1e-15) << step;
  }
}

TEST(ScheduleTest, WarmupRisesFromAboveZeroInEverySchedule) {
  for (const Schedule schedule : {Schedule::kConstant, Schedule::kLinear, Schedule::kCosine, Schedule::kInverseSqrt,
                                  Schedule::kWarmupStableDecay}) {
    EXPECT_EQ(learning_rate_at(unit(schedule), 0, kTotal), 0.25);
    EXPECT_EQ(learning_rate_at(unit(schedule), 1, kTotal), 0.5);
    EXPECT_EQ(learning_rate_at(unit(schedule), 2, kTotal), 0.75);
    EXPECT_EQ(learning_rate_at(unit(schedule), 3, kTotal), 1.0);
  }
}

TEST(ScheduleTest, BehindTheEndTheMinimumStays) {
  for (const Schedule schedule : {Schedule::kLinear, Schedule::kCosine, Schedule::kWarmupStableDecay}) {
    EXPECT_EQ(learning_rate_at(unit(schedule, 0.25), kTotal, kTotal), 0.25);
    EXPECT_EQ(learning_rate_at(unit(schedule, 0.25), kTotal + 1000, kTotal), 0.25);
  }
  EXPECT_EQ(learning_rate_at(unit(Schedule::kInverseSqrt, 0.25), 1000, kTotal), 0.25);
}

TEST(ScheduleTest, WarmupAndDecayHaveAutomaticLengths) {
  EXPECT_EQ(warmup_steps({.warmup_ratio = 0.06}, 101), 7);  // ceil(6.06)
  EXPECT_EQ(warmup_steps({.warmup_steps = 5, .warmup_ratio = 0.06}, 101), 5);
  const ScheduleOptions wsd{.schedule = Schedule::kWarmupStableDecay, .learning_rate = 1, .warmup_ratio = 0};
  EXPECT_EQ(learning_rate_at(wsd, 79, 99), 1.0);  // a fifth of 99 is 20 steps: 79..98
  EXPECT_EQ(learning_rate_at(wsd, 80, 99), 0.95);
  EXPECT_EQ(learning_rate_at({.schedule = Schedule::kLinear, .learning_rate = 1, .warmup_steps = 2}, 1, 2), 2.0 / 3);
}

TEST(ScheduleTest, WhatDoesNotFitIsAnError) {
  EXPECT_THROW(learning_rate_at({}, -1, 10), Error);
  EXPECT_THROW(learning_rate_at({.warmup_steps = 11}, 0, 10), Error);
  EXPECT_NO_THROW(check_schedule({.warmup_steps = 10}, 10));
  EXPECT_THROW(check_schedule({}, 0), Error);
  EXPECT_THROW(check_schedule({.warmup_steps = 11}, 10), Error);
  EXPECT_THROW(check_schedule({.learning_rate = 1e-5, .min_learning_rate = 1e-4}, 10), Error);
  EXPECT_THROW(check_schedule({.learning_rate = 1, .min_learning_rate = -1}, 10), Error);
  ScheduleOptions wsd = unit(Schedule::kWarmupStableDecay);
  wsd.decay_steps = 8;
  EXPECT_THROW(check_schedule(wsd, kTotal), Error);
}

TEST(ScheduleTest, OptionsHaveFieldsWithTheirUsualNames) {
  ScheduleOptions options;
  Fields list = fields(options);
  set_field(list, "lr_scheduler_type", "inverse_sqrt", "test");
  set_field(list, "lr", "3e-4", "test");
  set_field(list, "warmup_iters", "100", "test");
  set_field(list, "min-lr", "1e-5", "test");
  EXPECT_EQ(options.schedule, Schedule::kInverseSqrt);
  EXPECT_EQ(options.learning_rate, 3e-4);
  EXPECT_EQ(options.warmup_steps, 100);
  EXPECT_EQ(options.min_learning_rate, 1e-5);
  EXPECT_EQ(to_json(list).at("decay-steps"), "auto");
  set_field(list, "schedule", "wsd", "test");
  EXPECT_EQ(options.schedule, Schedule::kWarmupStableDecay);
}

}  // namespace
}  // namespace headshare
