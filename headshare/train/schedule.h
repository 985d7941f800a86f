// A schedule gives the learning rate of every step.
#pragma once

#include <cstdint>
#include <optional>

#include "headshare/base/options/field.h"

namespace headshare {

enum class Schedule { kConstant, kLinear, kCosine, kInverseSqrt, kWarmupStableDecay };

struct ScheduleOptions {
  Schedule schedule = Schedule::kCosine;
  double learning_rate = 1e-3;               // the peak
  double min_learning_rate = 0;              // where the decay ends
  std::optional<int64_t> warmup_steps = {};  // auto: ceil(warmup_ratio * total steps)
  double warmup_ratio = 0.05;
  std::optional<int64_t> decay_steps = {};  // of wsd; auto: ceil(total steps / 5)
};

Fields fields(ScheduleOptions& options);

// Counts the steps of the warm-up: warmup_steps, or ceil(warmup_ratio * total_steps).
int64_t warmup_steps(const ScheduleOptions& options, int64_t total_steps);

// Throws Error for fewer than 1 total steps, rates that are negative or in the wrong order, and a warm-up and decay
// that do not fit into the total. warmup_steps == total_steps is a warm-up alone.
void check_schedule(const ScheduleOptions& options, int64_t total_steps);

// Returns the rate of step `step` = 0, 1, ... of `total_steps`. With p = learning_rate, m = min_learning_rate, W =
// warm-up steps and T = total_steps:
//
//   all         step < W: p * (step + 1) / (W + 1), never 0 (nanoGPT's warm-up)
//   constant    p
//   linear      m + (p - m) * (T - step) / (T - W)
//   cosine      m + (p - m) * (1 + cos(pi * (step - W) / (T - W))) / 2
//   inverse_sqrt  max(m, p * sqrt(s / (step - W + s))), s = W, or 10,000 where W = 0
//   wsd         p up to T - D with D = decay_steps, then m + (p - m) * (T - step) / D
//   all but constant and inverse_sqrt: m for step >= T
//
// cosine is nanoGPT's get_lr with lr_decay_iters = T. With m = 0, from step W on, linear, cosine,
// constant and inverse_sqrt equal transformers' get_{linear,cosine,constant}_schedule_with_warmup and
// get_inverse_sqrt_schedule, and wsd its get_wsd_schedule with decay_type "linear"; during warm-up
// theirs is p * step / W, whose first step is lost on a rate of 0.
//
// Throws Error where check_schedule() does, and for a step below 0.
double learning_rate_at(const ScheduleOptions& options, int64_t step, int64_t total_steps);

}  // namespace headshare
