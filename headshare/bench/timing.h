// This header times things that take turns: what disturbs a machine for a second hits all of them.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <vector>

namespace headshare {

struct Timing {
  double median_ms = 0;
  double minimum_ms = 0;
  int repetitions = 0;
};

// Summarises the times; there is at least one.
Timing summarise(std::vector<double> milliseconds);

// Waits until the device has done all that it was given; a CPU has.
void synchronise(c10::Device device);

struct TurnOptions {
  c10::Device device = c10::Device(c10::kCPU);  // where the actions compute: a turn ends when they have
  int least_rounds = 3;
  int most_rounds = 15;
  double seconds = 2;                     // no further round after the least once all of them took this long
  std::function<void()> between = [] {};  // before every turn, untimed; it may throw to end the work
};

// Runs each action once untimed, then round by round in changing order. Returns the times of action i, one a round.
std::vector<Timing> take_turns(const std::vector<std::function<void()>>& actions, const TurnOptions& options);

}  // namespace headshare
