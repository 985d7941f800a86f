#include "headshare/report/statistics/machines.h"

#include <gmock/gmock.h>

#include "headshare/report/results/results_cases.h"
#include "headshare/report/results/results_json.h"
#include "headshare/report/statistics/notes.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Results on(const std::vector<CellMachine>& machines) {
  std::vector<Cell> cells;
  for (size_t i = 0; i < machines.size(); ++i) {
    cells.push_back(loss_cell("mha", static_cast<int64_t>(i), 3));
    cells.back().machine = machines[i];
  }
  return loss_results(cells);
}

const CellMachine kOne{.host = "s1", .processor = "EPYC", .instructions = "AVX2", .threads = 1, .device = "cpu"};
const CellMachine kTwin{.host = "s2", .processor = "EPYC", .instructions = "AVX2", .threads = 1, .device = "cpu"};
const CellMachine kOther{.host = "s3", .processor = "Xeon", .instructions = "AVX512", .threads = 2, .device = "cpu"};

TEST(MachinesTest, OneMachineNeedsNoWord) {
  EXPECT_EQ(machines_note(on({kOne, kOne})), "");
  EXPECT_EQ(machines_note(loss_results({loss_cell("mha", 1, 3)})), "");  // a file from before
}

TEST(MachinesTest, SeveralAreNamed) {
  EXPECT_EQ(
      machines_note(on({kOne, kTwin, kOne})),
      "Models were trained on 2 machines: s1 (2 models) and s2 (1 model). All have the same processor and as many "
      "threads.");
}

TEST(MachinesTest, SpeedsOfDifferentMachinesDoNotCompare) {
  EXPECT_THAT(
      machines_note(on({kOne, kTwin, kOther})),
      AllOf(HasSubstr("on 3 machines"), HasSubstr("do not compare them (s1 and s2: EPYC, AVX2, 1 thread, cpu; s3: "
                                                  "Xeon, AVX512, 2 threads, cpu)")));
  CellMachine more = kOne;
  more.threads = 2;
  EXPECT_THAT(machines_note(on({kOne, more})), AllOf(HasSubstr("on 1 machine:"), HasSubstr("do not compare them")));
}

TEST(MachinesTest, TheyStandInTheNotesAndInTheFile) {
  const Results results = on({kOne, kOther});
  EXPECT_THAT(footnotes(results, summarise(results)), Contains(HasSubstr("on 2 machines")));
  EXPECT_THAT(footnotes(on({kOne}), summarise(on({kOne}))), Not(Contains(HasSubstr("machines"))));
  const nlohmann::json file = nlohmann::json::parse(to_text(to_json(results)));
  EXPECT_EQ(file["cells"][1]["machine"]["processor"], "Xeon");
  EXPECT_EQ(results_from_json(file, "what was written").cells[1].machine, kOther);
}

}  // namespace
}  // namespace headshare
