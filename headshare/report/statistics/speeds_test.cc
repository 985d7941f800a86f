#include "headshare/report/statistics/speeds.h"

#include <gmock/gmock.h>

#include "headshare/report/exports/exports.h"
#include "headshare/report/html/html_report.h"
#include "headshare/report/results/results_cases.h"

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
  EXPECT_THAT(html_report({results}), Not(HasSubstr(">busy machine<")));
  EXPECT_FALSE(to_json(results).contains("busy_speeds"));
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

TEST(BusySpeedsTest, TheWarningStandsBesideEverySpeed) {
  Results results = two_seeds();
  results.cells[3].waited.decoding = 0.4;
  const std::string page = html_report({results});
  EXPECT_THAT(page, HasSubstr("<span class=\"busy\">210</span><span class=\"sub\">busy machine</span>"));
  EXPECT_THAT(page, Not(HasSubstr("<span class=\"busy\">769")));  // training speeds were measured alone
  const std::string csv = variants_csv({results});
  EXPECT_THAT(csv, HasSubstr("training_on_busy_machine,decoding_on_busy_machine,outputs_on_busy_machine\r\n"));
  EXPECT_THAT(csv, HasSubstr(",no,yes,\r\n"));
  EXPECT_EQ(to_json(results)["busy_speeds"], nlohmann::ordered_json::array({"decoding"}));
  const VariantRow row = summarise(results).front();
  EXPECT_EQ(speed_text(row, 1204, true), "1,204 (busy)");
  EXPECT_EQ(speed_text(row, 1204, false), "1,204");
  EXPECT_EQ(speed_text(row, 0, true), "-");
}

// Seconds of a busy machine are no time of the model.
TEST(BusySpeedsTest, AnAxisOfSecondsIsMarked) {
  Results results = two_seeds();
  results.match = "time";
  EXPECT_THAT(html_report({results}), HasSubstr(">seconds of training</text>"));
  results.cells[0].waited.training = 0.5;
  EXPECT_THAT(html_report({results}), HasSubstr(">seconds of training, busy machine</text>"));
}

}  // namespace
}  // namespace headshare
