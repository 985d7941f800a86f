#include "headshare/report/statistics/speeds.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/report/statistics/verdicts.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

constexpr double kBusyRatio = 1.25;  // of the fastest and the slowest seed of one variant

using Speed = double Cell::*;
using Wait = std::optional<double> WaitShares::*;

// Returns how many times as fast the fastest seed of a variant was as its slowest; 1 where no variant has two seeds.
double largest_ratio(const Results& results, const std::vector<VariantRow>& rows, Speed speed) {
  double largest = 1;
  for (const VariantRow& row : rows) {
    std::vector<double> speeds;
    for (const Cell* cell : cells_of(results, row.variant, row.best.setting)) {
      if (cell->*speed > 0) speeds.push_back(cell->*speed);
    }
    if (speeds.empty()) continue;
    const auto [slowest, fastest] = std::minmax_element(speeds.begin(), speeds.end());
    largest = std::max(largest, *fastest / *slowest);
  }
  return largest;
}

bool is_busy(const Results& results, const std::vector<VariantRow>& rows, Speed speed, Wait wait) {
  if (largest_ratio(results, rows, speed) >= kBusyRatio) return true;
  return std::any_of(rows.begin(), rows.end(), [&](const VariantRow& row) {
    const std::vector<const Cell*> cells = cells_of(results, row.variant, row.best.setting);
    return std::any_of(cells.begin(), cells.end(), [&](const Cell* cell) {
      return cell->*speed > 0 && (cell->waited.*wait).value_or(0) >= kBusyWait;
    });
  });
}

}  // namespace

BusySpeeds busy_speeds(const Results& results, const std::vector<VariantRow>& rows) {
  return {
      .training = is_busy(results, rows, &Cell::training_tokens_per_second, &WaitShares::training),
      .decoding = is_busy(results, rows, &Cell::decoding_tokens_per_second, &WaitShares::decoding),
      .outputs = is_busy(results, rows, &Cell::outputs_per_second, &WaitShares::outputs),
  };
}

std::vector<std::string> names_of(const BusySpeeds& busy) {
  std::vector<std::string> names;
  if (busy.training) names.emplace_back("training");
  if (busy.decoding) names.emplace_back("decoding");
  if (busy.outputs) names.emplace_back("outputs");
  return names;
}

std::string speed_text(const VariantRow& row, double per_second, bool busy) {
  return rate_text(row, per_second) + (busy && per_second > 0 ? " (busy)" : "");
}

std::string speed_note(const Results& results, const std::vector<VariantRow>& rows) {
  const BusySpeeds busy = busy_speeds(results, rows);
  std::vector<std::string> names = names_of(busy);
  std::replace(names.begin(), names.end(), std::string("outputs"), std::string("translating"));
  const std::string warning =
      busy.any()
          ? join_text(" ", capitalised(list_text(names)),
                      " speeds were measured on a busy machine and can be wrong in any direction: do not compare "
                      "them, measure again on an idle machine.")
          : "";
  if (most_seeds(rows) < 2) {
    return "Speeds are of one run each: whatever else the machine did meanwhile is in them." + warning;
  }
  const double ratio = largest_ratio(results, rows, &Cell::training_tokens_per_second);
  return join_text("Speeds are medians over seeds; training speeds of one ", noun(results), " differ by up to ",
                   percent_text(ratio - 1), " between its seeds.", warning);
}

}  // namespace headshare
