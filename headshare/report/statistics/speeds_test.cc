#include "headshare/report/statistics/speeds.h"

#include <gmock/gmock.h>

#include "headshare/report/results/results_cases.h"
#include "headshare/report/statistics/results_file.h"

namespace headshare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Results two_seeds() {
  return loss_results(
      {loss_cell("mha", 0, 2.0), loss_cell("mha", 1, 2.1), loss_cell("mqa", 0, 2.0), loss_cell("mqa", 1, 2.1)});
}

std::vector<std::string> busy(const Results& results) { return names_of(busy_speeds(results, summarise(results))); }

TEST(BusySpeedsTest, AnIdleMachineIsNotNamed) {
  const Results results = two_seeds();
  EXPECT_THAT(busy(results), IsEmpty());
  EXPECT_THAT(speed_note(results, summarise(results)), Not(HasSubstr("busy")));
  EXPECT_FALSE(results_file(results).contains("busy_speeds"));
}

TEST(BusySpeedsTest, SeedsThatDifferByAQuarterTell) {
  Results results = two_seeds();
  results.cells[0].decoding_tokens_per_second = 6 * results.cells[1].decoding_tokens_per_second;
  EXPECT_THAT(busy(results), ElementsAre("decoding"));
  results.cells[2].training_tokens_per_second *= 1.3;
  EXPECT_THAT(busy(results), ElementsAre("training", "decoding"));
}

// A machine that is as busy for every seed shows in no spread.
TEST(BusySpeedsTest, ThreadsThatWaitedTell) {
  Results results = two_seeds();
  results.cells[3].waited = {.training = 0.02, .decoding = 0.4};
  EXPECT_THAT(busy(results), ElementsAre("decoding"));
  const Results one_seed = loss_results({results.cells[3]});
  EXPECT_THAT(busy(one_seed), ElementsAre("decoding"));
  EXPECT_THAT(speed_note(one_seed, summarise(one_seed)), HasSubstr("Decoding speeds were measured on a busy machine"));
  results.cells[3].waited = {.training = 0.02, .outputs = 0.4};  // it wrote nothing against the clock
  EXPECT_THAT(busy(results), IsEmpty());
}

TEST(BusySpeedsTest, TheWarningStandsBesideTheNumber) {
  Results results = two_seeds();
  results.cells[3].waited.decoding = 0.4;
  EXPECT_EQ(results_file(results)["busy_speeds"], nlohmann::ordered_json::array({"decoding"}));
  const VariantRow row = summarise(results).front();
  EXPECT_EQ(speed_text(row, 1204, true), "1,204 (busy)");
  EXPECT_EQ(speed_text(row, 1204, false), "1,204");
  EXPECT_EQ(speed_text(row, 0, true), "-");
}

}  // namespace
}  // namespace headshare
