#include "headshare/compare/comparison.h"

#include <gmock/gmock.h>

#include "headshare/compare/cell_run.h"
#include "headshare/compare/comparison_home.h"
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

class GatheringTest : public testing::Test {
 protected:
  GatheringTest() {
    options_.seeds = 2;
    experiment_ = open_experiment(options_);
    plans_ = plan_cells(options_, *experiment_);
  }

  void run(size_t cell) {
    Observer silent;
    run_cell(plans_[cell], *experiment_, place_in(home_.path(), plans_[cell]), at::kCPU, silent, kNeverStop);
  }

  const TemporaryDirectory home_;
  ComparisonOptions options_ = small_diagnostic({"mha", "sha"});
  std::unique_ptr<Experiment> experiment_;
  std::vector<CellPlan> plans_;
  Watcher watcher_;
  Results results_;
};

TEST_F(GatheringTest, ResultsStandInTheOrderOfThePlanWhateverCameFirst) {
  const fs::path home = home_.path();
  Gathering first(plans_, home, watcher_, &results_);
  EXPECT_EQ(first.open(), 4u);
  EXPECT_FALSE(first.take(3));
  for (const size_t cell : {3, 0, 2}) {
    first.begin(cell);
    run(cell);
    EXPECT_TRUE(first.take(cell));
  }
  first.begin(1);
  first.fail(1, "no luck");
  EXPECT_THAT(watcher_.heard, ElementsAre("4/4 sha-seed4", "1/4 mha-seed3", "3/4 mha-seed4", "2/4 sha-seed3",
                                          "sha-seed3 failed: no luck"));
  EXPECT_THAT(watcher_.finished, ElementsAre(0, 1, 2, 3, 3));
  EXPECT_EQ(first.open(), 0u);
  EXPECT_TRUE(is_complete(results_));
  ASSERT_EQ(results_.cells.size(), 3u);
  EXPECT_EQ(results_.cells[0].key.seed, 3);
  EXPECT_EQ(results_.cells[2].key.variant, "sha");
  ASSERT_EQ(results_.failed.size(), 1u);
  EXPECT_EQ(results_.failed[0].reason, "no luck");

  // Another call takes over what is finished and tries the other again.
  Watcher second;
  Results again;
  Gathering more(plans_, home, second, &again);
  EXPECT_THAT(second.heard, ElementsAre("3 of 4 taken over"));
  EXPECT_THAT(second.finished, ElementsAre(3));  // a finished cell is never missing
  EXPECT_TRUE(more.is_open(1));
  run(1);
  EXPECT_TRUE(more.take(1));
  EXPECT_TRUE(again.failed.empty());
  EXPECT_EQ(to_json(again.cells[0]), to_json(results_.cells[0]));
  EXPECT_NE(again.cells[0].test_loss, again.cells[2].test_loss);  // another seed
}

TEST_F(GatheringTest, ACellKnowsWhoseWeightsItTakes) {
  options_.schemes = {"mha", "el_lossless"};
  plans_ = plan_cells(options_, *experiment_);
  const fs::path home = home_.path();
  const Gathering gathering(plans_, home, watcher_, &results_);
  EXPECT_EQ(gathering.weights_of(1), 0u);
  EXPECT_EQ(gathering.weights_of(3), 2u);
  EXPECT_FALSE(gathering.weights_of(2));
}

TEST(ForecastTest, ModelsThatAreTrainedAtATimeShareIt) {
  const Forecast one{.data = "a book", .models = 3, .seconds = 30};
  EXPECT_THAT(time_text(with_several_at_once(one, {})), testing::StartsWith("about 30 s on "));
  const Forecast two = with_several_at_once(one, {.at_once = 2});
  EXPECT_EQ(two.seconds, 15);
  EXPECT_THAT(time_text(two),
              testing::AllOf(testing::StartsWith("about 15 s, 2 at a time on "), testing::EndsWith(" each")));
  EXPECT_EQ(with_several_at_once(one, {.at_once = 8}).seconds, 10);  // there are no more
}

TEST_F(GatheringTest, TooLittleDiskIsSaidBeforehand) {
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
