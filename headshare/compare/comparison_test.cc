#include "headshare/compare/comparison.h"

#include <gmock/gmock.h>

#include "headshare/compare/cell_run.h"
#include "headshare/compare/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A Watcher writes down what it hears.
class Watcher : public ComparisonObserver {
 public:
  void on_taken_over(size_t finished, size_t count) override {
    heard.push_back(join_text(finished, " of ", count, " taken over"));
  }
  void on_cell(const CellPlan& plan, int64_t number, int64_t count) override {
    heard.push_back(join_text(number, "/", count, " ", plan.directory()));
  }
  void on_failure(const CellPlan& plan, const std::string& reason) override {
    heard.push_back(plan.directory() + " failed: " + reason);
  }
  void on_results(const Results& results) override { finished.push_back(results.cells.size()); }

  std::vector<std::string> heard;
  std::vector<size_t> finished;
};

class RunComparisonTest : public testing::Test {
 protected:
  RunComparisonTest() {
    options_.seeds = 2;
    experiment_ = open_experiment(options_);
    plans_ = plan_cells(options_, *experiment_);
  }

  // Runs cells in this process; sha of seed 3 fails while `sha_fails_`.
  std::optional<std::string> run_one(const CellPlan& plan) {
    if (sha_fails_ && plan.directory() == "sha-seed3") return "no luck";
    Observer silent;
    run_cell(plan, *experiment_, home_.path(), at::kCPU, silent, kNeverStop);
    return {};
  }

  Results compare(Watcher& watcher) {
    Results results;
    run_comparison(
        plans_, home_.path(), [this](const CellPlan& plan) { return run_one(plan); }, watcher, &results);
    return results;
  }

  const TemporaryDirectory home_;
  ComparisonOptions options_ = small_diagnostic({"mha", "sha"});
  std::unique_ptr<Experiment> experiment_;
  std::vector<CellPlan> plans_;
  bool sha_fails_ = false;
};

TEST_F(RunComparisonTest, AFailureCostsOneCellAndIsTriedAgain) {
  sha_fails_ = true;
  Watcher first;
  const Results found = compare(first);
  EXPECT_THAT(first.heard, ElementsAre("1/4 mha-seed3", "2/4 sha-seed3", "sha-seed3 failed: no luck", "3/4 mha-seed4",
                                       "4/4 sha-seed4"));
  EXPECT_THAT(first.finished, ElementsAre(0, 1, 1, 2, 3));
  EXPECT_EQ(found.planned.size(), 4u);
  ASSERT_EQ(found.failed.size(), 1u);
  EXPECT_EQ(found.failed[0].reason, "no luck");
  EXPECT_TRUE(is_complete(found));

  sha_fails_ = false;
  Watcher second;
  const Results again = compare(second);
  EXPECT_THAT(second.heard, ElementsAre("3 of 4 taken over", "2/4 sha-seed3"));
  EXPECT_THAT(second.finished, ElementsAre(3, 4));  // a finished cell is never missing
  EXPECT_EQ(again.cells[1].key.variant, "sha");
  EXPECT_TRUE(again.failed.empty());
  ASSERT_EQ(again.cells.size(), 4u);
  EXPECT_EQ(to_json(again.cells[0]), to_json(found.cells[0]));
  EXPECT_NE(again.cells[0].test_loss, again.cells[2].test_loss);  // another seed
}

TEST_F(RunComparisonTest, ARunnerThatLeavesNothingIsADefect) {
  Watcher watcher;
  Results results;
  const auto nothing = [](const CellPlan&) { return std::optional<std::string>(); };
  EXPECT_THAT(error_message([&] { run_comparison(plans_, home_.path(), nothing, watcher, &results); }),
              HasSubstr("cell.json"));
}

TEST_F(RunComparisonTest, TooLittleDiskIsSaidBeforehand) {
  check_disk(plans_, *experiment_, home_.path());
  options_.model.attention.d_model = 1 << 20;
  options_.model.layers = 1000;
  const std::string refusal =
      error_message([&] { check_disk(plan_cells(options_, *experiment_), *experiment_, home_.path()); });
  EXPECT_THAT(refusal, HasSubstr("PiB"));
  EXPECT_THAT(refusal, HasSubstr("--out"));
}

}  // namespace
}  // namespace headshare
