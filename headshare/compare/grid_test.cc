#include "headshare/compare/grid.h"

#include <gmock/gmock.h>

#include <set>

#include "headshare/compare/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<CellPlan> planned(const ComparisonOptions& options) {
  return plan_cells(options, *open_experiment(options));
}

std::vector<std::string> directories(const std::vector<CellPlan>& plans) {
  std::vector<std::string> names;
  for (const CellPlan& plan : plans) names.push_back(plan.directory());
  return names;
}

TEST(PlanCellsTest, SeedsOutsideSettingsThenSchemesElLosslessLast) {
  ComparisonOptions options = small_diagnostic({"el_lossless", "sha", "mha"});
  options.seeds = 2;
  const std::vector<CellPlan> plans = planned(options);
  EXPECT_THAT(directories(plans), ElementsAre("mha-seed3", "sha-seed3", "el_lossless-seed3", "mha-seed4", "sha-seed4",
                                              "el_lossless-seed4"));
  EXPECT_EQ(plans[4].options.train.seed, 4);
  EXPECT_EQ(plans[4].options.model.attention.scheme, "sha");
  EXPECT_FALSE(plans[4].weights_of);
  EXPECT_EQ(plans[5].weights_of, plans[3].key);
}

TEST(PlanCellsTest, ASweepMultipliesTheCells) {
  ComparisonOptions options = small_diagnostic({"mha", "sha"});
  options.sweep = {"learning-rate=0.1", "0.2", "heads=1", "2"};
  const std::vector<CellPlan> plans = planned(options);
  ASSERT_EQ(plans.size(), 8u);
  const std::vector<std::string> names = directories(plans);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 8u);
  EXPECT_EQ(names[0], "mha-learning-rate=0.1-heads=1-seed3");
  EXPECT_EQ(plans.back().options.train.schedule.learning_rate, 0.2);
  EXPECT_EQ(plans.back().options.model.attention.heads, 2);
}

TEST(PlanCellsTest, RefusesAnEmptyGrid) {
  EXPECT_THAT(error_message([] { planned(small_diagnostic({"el_lossless"})); }), HasSubstr("add mha"));
  ComparisonOptions rotary = small_diagnostic({"el_shared"});
  rotary.model.positions = PositionKind::kRotary;
  EXPECT_THAT(error_message([&] { planned(rotary); }),
              AllOf(HasSubstr("none of the schemes"), HasSubstr("; el_shared: "), HasSubstr("rotary")));
}

TEST(MatchParametersTest, TotalsAgreeToOneUnitOfWidth) {
  ComparisonOptions options = small_diagnostic({"all"});
  options.match = Match::kParameters;
  options.model.layers = 2;
  const auto experiment = open_experiment(options);
  int64_t largest = 0;
  for (const CellPlan& plan : plan_cells(small_diagnostic({"all"}), *experiment)) {
    ComparisonOptions wide = plan.options;
    wide.model.layers = 2;
    largest = std::max(largest, measure(experiment->model(wide)).total_parameters);
  }
  const int64_t unit = 2 * (2 * 16 + 1);  // layers x (a column, a row and a bias)
  for (const CellPlan& plan : plan_cells(options, *experiment)) {
    const int64_t total = measure(experiment->model(plan.options)).total_parameters;
    EXPECT_LE(2 * std::abs(total - largest), unit) << plan.directory();
  }
}

TEST(MatchTimeTest, FasterSchemesTakeMoreSteps) {
  ComparisonOptions options = small_diagnostic({"mha", "mqa", "sha"});
  options.match = Match::kTime;
  options.train.steps = 100;
  const auto speed = [](const ComparisonOptions& cell) { return cell.model.attention.scheme == "mha" ? 0.5 : 0.4; };
  match_time(trainable_variants(options), speed, &options);
  EXPECT_THAT(options.scheme_steps, ElementsAre("mha=100", "mqa=125", "sha=125"));
  const std::vector<CellPlan> plans = planned(options);
  EXPECT_EQ(plans[0].options.train.steps, 100);
  EXPECT_EQ(plans[1].options.train.steps, 125);
}

TEST(MatchTimeTest, StepsPerSchemeAreCheckedAndNeedTheMatch) {
  ComparisonOptions options = small_diagnostic({"mha"});
  options.scheme_steps = {"mha=7"};
  EXPECT_THAT(error_message([&] { planned(options); }), HasSubstr("--match time"));
  options.match = Match::kTime;
  EXPECT_EQ(planned(options).front().options.train.steps, 7);
  options.scheme_steps = {"mha"};
  EXPECT_THAT(error_message([&] { planned(options); }), HasSubstr("mha=400"));
  options.scheme_steps = {"mhaa=7"};
  EXPECT_THAT(error_message([&] { planned(options); }), HasSubstr("mha"));
  options.scheme_steps = {"mha=0"};
  EXPECT_THAT(error_message([&] { planned(options); }), HasSubstr("0"));
  options.scheme_steps = {"mha=7"};
  options.schemes = {"mha", "sha"};
  EXPECT_THAT(error_message([&] { planned(options); }), HasSubstr("sha was not there when --match time"));
  options.sweep = {"steps=5", "6"};
  EXPECT_THAT(error_message([&] { planned(options); }), HasSubstr("leave steps out of --sweep"));
}

TEST(CellPlanTest, ReadsWhatItWrote) {
  ComparisonOptions options = small_diagnostic({"mha", "el_lossless"});
  options.sweep = {"learning-rate=0.1"};
  for (const CellPlan& plan : planned(options)) {
    const CellPlan read = plan_from_json(nlohmann::json::parse(to_json(plan).dump()), "here");
    EXPECT_EQ(to_json(read), to_json(plan));
    EXPECT_EQ(read.options.model.attention.scheme, plan.options.model.attention.scheme);
    EXPECT_EQ(read.weights_of, plan.weights_of);
  }
  EXPECT_THAT(error_message([] { plan_from_json(nlohmann::json::array(), "here"); }), HasSubstr("here"));
}

}  // namespace
}  // namespace headshare
