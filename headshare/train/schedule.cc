#include "headshare/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "headshare/base/error.h"

namespace headshare {
namespace {

int64_t decay_steps(const ScheduleOptions& options, int64_t total_steps) {
  return options.decay_steps.value_or((total_steps + 4) / 5);
}

// Returns the share of the way from the peak to the minimum that is left: 1 at `first`, 0 from `last` on.
double rest(int64_t step, int64_t first, int64_t last) {
  if (step >= last) return 0;
  return static_cast<double>(last - std::max(step, first)) / static_cast<double>(last - first);
}

}  // namespace

Fields fields(ScheduleOptions& options) {
  const EnumNames<Schedule> names = {{Schedule::kConstant, "constant"},
                                     {Schedule::kLinear, "linear"},
                                     {Schedule::kCosine, "cosine"},
                                     {Schedule::kInverseSqrt, "inverse_sqrt"},
                                     {Schedule::kWarmupStableDecay, "wsd"}};
  return {
      field("schedule", &options.schedule, "how the learning rate falls after warm-up", names,
            {.aliases = {"lr-scheduler-type", "lr-schedule"}}),
      field("learning-rate", &options.learning_rate, "the highest learning rate", {.min = 0, .aliases = {"lr"}}),
      field("min-learning-rate", &options.min_learning_rate, "the learning rate at the end of the decay",
            {.min = 0, .aliases = {"min-lr"}}),
      field("warmup-steps", &options.warmup_steps, "steps of rising learning rate; auto: from warmup-ratio",
            {.min = 0, .aliases = {"warmup-iters", "num-warmup-steps"}}),
      field("warmup-ratio", &options.warmup_ratio, "the warm-up as a share of all steps", {.min = 0, .max = 1}),
      field("decay-steps", &options.decay_steps, "steps of falling learning rate of wsd; auto: a fifth of all",
            {.min = 0, .aliases = {"num-decay-steps"}}),
  };
}

int64_t warmup_steps(const ScheduleOptions& options, int64_t total_steps) {
  if (options.warmup_steps) return *options.warmup_steps;
  return static_cast<int64_t>(std::ceil(options.warmup_ratio * static_cast<double>(total_steps)));
}

void check_schedule(const ScheduleOptions& options, int64_t total_steps) {
  HS_CHECK(total_steps >= 1, "a schedule needs at least 1 step in total, not ", total_steps, "; set --steps");
  HS_CHECK(options.min_learning_rate >= 0 && options.min_learning_rate <= options.learning_rate,
           "min-learning-rate must lie between 0 and learning-rate: ", options.min_learning_rate, " and ",
           options.learning_rate);
  const int64_t warmup = warmup_steps(options, total_steps);
  HS_CHECK(warmup >= 0 && warmup <= total_steps, "the warm-up of ", warmup, " steps must fit into the ", total_steps,
           " steps of training; set --warmup-steps or --warmup-ratio");
  if (options.schedule != Schedule::kWarmupStableDecay) return;
  const int64_t decay = decay_steps(options, total_steps);
  HS_CHECK(decay >= 0 && decay <= total_steps - warmup, "the decay of ", decay,
           " steps must fit behind the warm-up of ", warmup, " into the ", total_steps,
           " steps of training; set --decay-steps");
}

double learning_rate_at(const ScheduleOptions& options, int64_t step, int64_t total_steps) {
  HS_CHECK(step >= 0, "a training step counts from 0, not ", step);
  check_schedule(options, total_steps);
  const double peak = options.learning_rate;
  const double least = options.min_learning_rate;
  const int64_t warmup = warmup_steps(options, total_steps);
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  switch (options.schedule) {
    case Schedule::kConstant:
      return peak;
    case Schedule::kLinear:
      return least + (peak - least) * rest(step, warmup, total_steps);
    case Schedule::kCosine:
      return least + (peak - least) * (1 - std::cos(std::numbers::pi * rest(step, warmup, total_steps))) / 2;
    case Schedule::kInverseSqrt: {
      const auto scale = static_cast<double>(warmup > 0 ? warmup : 10000);
      return std::max(least, peak * std::sqrt(scale / (static_cast<double>(step - warmup) + scale)));
    }
    case Schedule::kWarmupStableDecay:
      return least + (peak - least) * rest(step, total_steps - decay_steps(options, total_steps), total_steps);
  }
  throw Error("unknown schedule");
}

}  // namespace headshare
