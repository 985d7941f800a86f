#include "headshare/train/processes.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/train/thread_reducer.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ProcessesTest, TextsAndAnswersReachAll) {
  run_together(3, [](Reducer& processes) {
    EXPECT_EQ(text_of(processes, join_text("text of ", processes.rank()), 2), "text of 2");
    EXPECT_EQ(text_of(processes, ""), "");
    EXPECT_TRUE(any_process(processes, processes.rank() == 1));
    EXPECT_FALSE(any_process(processes, false));
  });
}

TEST(ProcessesTest, WhatEndsTheWorkOfProcess0EndsAllWithItsSentence) {
  run_together(2, [](Reducer& processes) {
    int worked = 0;
    on_process_0(processes, [&](const Beat& beat) {
      beat();
      ++worked;
    });
    EXPECT_EQ(worked, leads(processes) ? 1 : 0);
    EXPECT_EQ(error_message([&] { on_process_0(processes, [](const Beat&) { throw Error("the disk is full"); }); }),
              "the disk is full");
    EXPECT_THROW(on_process_0(processes, [](const Beat&) { throw Interrupted("stopped"); }), Interrupted);
  });
}

TEST(ProcessesTest, ASlowProcessIsWaitedForWithBeats) {
  run_together(3, [](Reducer& processes) {
    const int64_t beats = 2 * processes.rank();
    in_all_processes(
        processes,
        [&](const Beat& beat) {
          for (int64_t i = 0; i < beats; ++i) beat();
        },
        std::chrono::seconds(0));
    EXPECT_EQ(text_of(processes, "all are done"), "all are done");
  });
}

TEST(ProcessesTest, AProcessThatIsGoneEndsTheOthers) {
  run_together(2, [](Reducer& processes) {
    if (leads(processes)) return;
    EXPECT_THROW(any_process(processes, true), ProcessLost);
  });
}

TEST(ProcessesTest, ProcessesWithOtherOptionsAreRefusedByAll) {
  const auto sentence_for = [](const Facts& of_0, const Facts& of_2) {
    std::vector<std::string> sentences(3);
    run_together(3, [&](Reducer& processes) {
      const auto rank = static_cast<size_t>(processes.rank());
      sentences[rank] =
          error_message([&] { check_alike(processes, rank == 2 ? of_2 : of_0, join_text("host h", rank)); });
    });
    EXPECT_EQ(sentences[0], sentences[1]);
    EXPECT_EQ(sentences[0], sentences[2]);
    return sentences[0];
  };
  const Facts facts = {{"version", "1.0"}, {"--batch-size", "32"}};
  EXPECT_EQ(sentence_for(facts, facts), "no error");
  EXPECT_THAT(sentence_for(facts, {{"version", "1.0"}, {"--batch-size", "16"}}),
              HasSubstr("process 2 (host h2) has --batch-size 16 and process 0 32"));
  EXPECT_THAT(sentence_for(facts, {{"version", "0.9"}}), HasSubstr("has version 0.9 and process 0 1.0"));
  EXPECT_THAT(sentence_for(facts, {{"version", "1.0"}}), HasSubstr("lacks what process 0 has: --batch-size"));
  EXPECT_THAT(sentence_for(facts, {{"version", "1.0"}, {"--steps", "3"}}),
              HasSubstr("has --steps where process 0 has --batch-size"));
}

TEST(ProcessesTest, ThingsAreDealtBySize) {
  EXPECT_THAT(deal_by_size({1, 8, 5, 4}, 2), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(deal_by_size({3, 3, 3}, 1), ElementsAre(0, 0, 0));
  EXPECT_THAT(deal_by_size({7}, 3), ElementsAre(0));
}

}  // namespace
}  // namespace headshare
