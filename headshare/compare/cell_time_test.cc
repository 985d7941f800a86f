#include "headshare/compare/cell_time.h"

#include <gmock/gmock.h>

#include "headshare/compare/cell_run.h"
#include "headshare/compare/testing.h"

namespace headshare {
namespace {

TEST(CellTimeTest, CountsEvaluationsAndStartAndEnd) {
  const CellTime time{.start = 2, .step = 0.5, .evaluation = 3, .closing = 4};
  TrainOptions train;
  train.steps = 25;
  train.evaluate_every = 10;  // after 10, 20 and 25 steps
  EXPECT_EQ(whole_seconds(time, train), 2 + 12.5 + 9 + 4);
  train.evaluate_every.reset();  // a tenth of all: every 2
  EXPECT_EQ(whole_seconds(time, train), 2 + 12.5 + 13 * 3 + 4);
}

class EstimateTest : public testing::Test {
 protected:
  EstimateTest() {
    options_.seeds = 2;
    options_.train.steps = 10;
    options_.train.evaluate_every = 10;
    experiment_ = open_experiment(options_);
    plans_ = plan_cells(options_, *experiment_);
  }

  // Estimates the seconds where every step of mha takes `step` seconds and every step of sha twice as long.
  double estimate(double step) {
    asked_.clear();
    return estimated_seconds(plans_, home_.path(), [&](const ComparisonOptions& cell) {
      const std::string& scheme = cell.model.attention.scheme;
      asked_.push_back(scheme);
      return CellTime{.step = scheme == "mha" ? step : 2 * step};
    });
  }

  const TemporaryDirectory home_;
  ComparisonOptions options_ = small_diagnostic({"mha", "sha"});
  std::unique_ptr<Experiment> experiment_;
  std::vector<CellPlan> plans_;
  std::vector<std::string> asked_;
};

TEST_F(EstimateTest, MeasuresEachVariantOnceWhereItIsWorthIt) {
  EXPECT_EQ(estimate(10), 2 * (100 + 200));
  EXPECT_THAT(asked_, testing::ElementsAre("mha", "sha"));
  EXPECT_EQ(estimate(0.1), 4 * 1);  // four seconds: the first stands for all
  EXPECT_THAT(asked_, testing::ElementsAre("mha"));
}

TEST_F(EstimateTest, CountsWhatIsLeftToDo) {
  Observer silent;
  run_cell(plans_[0], *experiment_, place_in(home_.path(), plans_[0]), at::kCPU, silent, kNeverStop);
  EXPECT_EQ(estimate(10), 100 + 2 * 200);
}

TEST_F(EstimateTest, MeasuresARealCell) {
  const CellTime time = measure_cell(*experiment_, options_, at::kCPU, /*start=*/1000);
  EXPECT_GE(time.start, 1000);
  for (const double part : {time.step, time.evaluation, time.closing}) {
    EXPECT_GT(part, 0);
    EXPECT_LT(part, 100);
  }
}

}  // namespace
}  // namespace headshare
