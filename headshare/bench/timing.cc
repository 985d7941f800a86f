#include "headshare/bench/timing.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>

#include "headshare/base/error.h"

namespace headshare {
namespace {

double milliseconds_of(const std::function<void()>& action, c10::Device device) {
  synchronise(device);
  const auto began = std::chrono::steady_clock::now();
  action();
  synchronise(device);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

void synchronise(c10::Device device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeDevice(device.has_index() ? device.index() : guard.getDevice().index());
}

Timing summarise(std::vector<double> milliseconds) {
  HS_CHECK(!milliseconds.empty(), "no times to summarise");
  std::sort(milliseconds.begin(), milliseconds.end());
  const size_t half = milliseconds.size() / 2;
  const bool odd = milliseconds.size() % 2 == 1;
  const double median = odd ? milliseconds[half] : (milliseconds[half - 1] + milliseconds[half]) / 2;
  return {median, milliseconds.front(), static_cast<int>(milliseconds.size())};
}

std::vector<Timing> take_turns(const std::vector<std::function<void()>>& actions, const TurnOptions& options) {
  HS_CHECK(options.least_rounds >= 1 && options.most_rounds >= options.least_rounds,
           "the number of rounds must be at least 1, not ", options.least_rounds, " to ", options.most_rounds);
  for (const auto& action : actions) {
    options.between();
    action();
    synchronise(options.device);
  }
  std::vector<std::vector<double>> times(actions.size());
  double total = 0;
  for (int round = 0; round < options.most_rounds; ++round) {
    if (round >= options.least_rounds && total > 1000 * options.seconds) break;
    for (size_t turn = 0; turn < actions.size(); ++turn) {
      // Nobody always comes after the same neighbour's use of the caches.
      const size_t at = (turn + static_cast<size_t>(round)) % actions.size();
      options.between();
      times[at].push_back(milliseconds_of(actions[at], options.device));
      total += times[at].back();
    }
  }
  std::vector<Timing> timings;
  for (auto& one : times) timings.push_back(summarise(std::move(one)));
  return timings;
}

}  // namespace headshare
