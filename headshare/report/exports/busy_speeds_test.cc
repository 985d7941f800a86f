// The page and the tables mark speeds of a busy machine.
#include <gmock/gmock.h>

#include "headshare/report/exports/exports.h"
#include "headshare/report/html/html_report.h"
#include "headshare/report/results/results_cases.h"

namespace headshare {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Results seeds_on_two_schemes() {
  return loss_results(
      {loss_cell("mha", 0, 2.0), loss_cell("mha", 1, 2.1), loss_cell("mqa", 0, 2.0), loss_cell("mqa", 1, 2.1)});
}

TEST(BusySpeedsShownTest, TheWarningStandsBesideEverySpeed) {
  Results results = seeds_on_two_schemes();
  results.cells[3].waited.decoding = 0.4;
  EXPECT_THAT(html_report({seeds_on_two_schemes()}), Not(HasSubstr(">busy machine<")));
  const std::string page = html_report({results});
  EXPECT_THAT(page, HasSubstr("<span class=\"busy\">210</span><span class=\"sub\">busy machine</span>"));
  EXPECT_THAT(page, Not(HasSubstr("<span class=\"busy\">769")));  // training speeds were measured alone
  const std::string csv = variants_csv({results});
  EXPECT_THAT(csv, HasSubstr("training_on_busy_machine,decoding_on_busy_machine,outputs_on_busy_machine\r\n"));
  EXPECT_THAT(csv, HasSubstr(",no,yes,\r\n"));
}

// Seconds of a busy machine are no time of the model.
TEST(BusySpeedsShownTest, AnAxisOfSecondsIsMarked) {
  Results results = seeds_on_two_schemes();
  results.match = "time";
  EXPECT_THAT(html_report({results}), HasSubstr(">seconds of training</text>"));
  results.cells[0].waited.training = 0.5;
  EXPECT_THAT(html_report({results}), HasSubstr(">seconds of training, busy machine</text>"));
}

}  // namespace
}  // namespace headshare
