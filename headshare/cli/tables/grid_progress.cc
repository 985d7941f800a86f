#include "headshare/cli/tables/grid_progress.h"

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/format.h"
#include "headshare/compare/method.h"

namespace headshare {
namespace {

std::string numbered_cell(const CellKey& key, int64_t number, int64_t count) {
  const std::string setting = key.setting.empty() ? "" : " " + key.setting;
  return join_text(number, "/", count, " ", key.variant, setting, " seed ", key.seed);
}

double share_done(const CellProgress& progress) {
  if (progress.total_steps <= 0) return 0;
  return static_cast<double>(progress.step) / static_cast<double>(progress.total_steps);
}

// Returns how far one cell is: "loss 3.2012  41k tokens/s", or what else it does.
std::string state_text(const CellProgress& progress, const std::string& unit) {
  if (progress.doing != "training") return progress.doing;
  return join_text("loss ", format_fixed(progress.loss, 4), "  ", format_count(progress.tokens_per_second), unit);
}

std::string unit_of(const ComparisonOptions& options) { return comparison_method(options).unit(options); }

}  // namespace

std::string running_text(const std::vector<CellPlan>& plans, const std::vector<RunningCell>& running) {
  if (running.empty()) return "";
  const auto count = static_cast<int64_t>(plans.size());
  const std::string unit = " " + unit_of(plans[running.front().cell].options);
  const auto named = [&](const RunningCell& one) {
    return numbered_cell(plans[one.cell].key, static_cast<int64_t>(one.cell) + 1, count);
  };
  if (running.size() == 1) return named(running.front()) + "  " + state_text(running.front().progress, unit);
  constexpr size_t kMostNamed = 3;
  double speed = 0;
  for (const RunningCell& one : running) speed += one.progress.tokens_per_second;
  std::string text = join_text(running.size(), " run, ", format_count(speed), unit, ": ");
  for (size_t i = 0; i < std::min(running.size(), kMostNamed); ++i) {
    const int per_cent = static_cast<int>(100 * share_done(running[i].progress));
    text += join_text(i == 0 ? "" : ", ", named(running[i]), " ", per_cent, "%");
  }
  return text + (running.size() > kMostNamed ? ", ..." : "");
}

std::string GridProgress::title(const CellPlan& plan) const {
  const auto number = numbers_.find(plan.directory());
  return numbered_cell(plan.key, number == numbers_.end() ? 0 : number->second, count_);
}

void GridProgress::on_taken_over(size_t finished, size_t count) {
  notice(join_text(finished, " of ", count, " models were finished before and are taken over"));
}

void GridProgress::on_cell(const CellPlan& plan, int64_t number, int64_t count) {
  numbers_[plan.directory()] = number;
  count_ = count;
}

void GridProgress::on_failure(const CellPlan& plan, const std::string& reason) {
  notice(join_text(title(plan), " failed: ", reason));
}

void GridProgress::on_progress(const std::vector<CellPlan>& plans, const std::vector<RunningCell>& running,
                               size_t done) {
  if (running.empty()) return;
  double finished = static_cast<double>(done);
  for (const RunningCell& one : running) finished += share_done(one.progress);
  line_.update(finished, static_cast<double>(plans.size()), running_text(plans, running));
}

void GridProgress::on_note(const CellPlan& plan, const std::string& note) {
  if (said_.insert(note).second) notice(join_text(title(plan), ": ", note));
}

}  // namespace headshare
