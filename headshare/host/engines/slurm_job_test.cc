#include "headshare/host/engines/slurm_job.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Slurm 22.05 printed this for an array of four on two nodes, after one of the nodes was set down; columns are narrower
// here.
constexpr const char* kRecordedQueue =
    "1         |N/A       |COMPLETED |0         |0         |s[1-2]    |None                |\n"
    "4         |0         |PENDING   |0         |1         |          |BeginTime           |\n"
    "4         |1         |FAILED    |768       |0         |s2        |NonZeroExitCode     |\n"
    "4         |2         |RUNNING   |0         |0         |s2        |None                |\n"
    "4         |3         |PENDING   |0         |0         |          |Resources           |\n";

TEST(SlurmOptionsTest, AreWordsOfSbatch) {
  EXPECT_THAT(parse_slurm_options("").words, IsEmpty());
  const SlurmOptions options = parse_slurm_options("partition=gpu,throttle=3,time=2:00:00,nodelist=s1\\,s2,exclusive");
  EXPECT_THAT(options.words, ElementsAre("--partition=gpu", "--time=2:00:00", "--nodelist=s1,s2", "--exclusive"));
  EXPECT_EQ(options.throttle, 3);
}

TEST(SlurmOptionsTest, BadOnesAreNamed) {
  for (const char* bad : {"throttle=0", "throttle=", "throttle=many", "throttle"}) {
    EXPECT_THAT(error_message([&] { parse_slurm_options(bad); }), AllOf(HasSubstr(bad), HasSubstr("at least 1")))
        << bad;
  }
  for (const char* bad : {"--partition=x", "=5", "mem=1G,,qos=a", "a b=1", "Mem=1"}) {
    EXPECT_THAT(error_message([&] { parse_slurm_options(bad); }), HasSubstr("long options of sbatch")) << bad;
  }
}

TEST(SlurmQueueTest, RecordedLinesAreRead) {
  const std::vector<QueuedTask> tasks = parse_queue(kRecordedQueue);
  ASSERT_THAT(tasks, SizeIs(4));  // job 1 is no array
  EXPECT_EQ(tasks[0].job, "4");
  EXPECT_EQ(tasks[0].state, "PENDING");
  EXPECT_EQ(tasks[0].restarts, 1);
  EXPECT_EQ(tasks[0].reason, "BeginTime");
  EXPECT_EQ(tasks[1].task, 1u);
  EXPECT_EQ(ended_with(tasks[1].status), "exit code 3");
  EXPECT_EQ(tasks[2].node, "s2");
  EXPECT_THAT(parse_queue("slurm_load_jobs: odd\n|||||||\n"), IsEmpty());
}

// Runs the script as Slurm would, in a folder whose name a shell would take apart.
TEST(SlurmScriptTest, WordsReachTheProgramAsTheyAre) {
  TemporaryDirectory home;
  const fs::path odd = home / "it's \"odd\" $HOME `id` %j \\ x";
  make_directories(odd);
  write_file(odd / "program", "#!/bin/sh\nfor word in \"$@\"; do echo \"[$word]\"; done\nexit 5\n");
  fs::permissions(odd / "program", fs::perms::owner_all);
  const EngineCall call{
      .program = odd / "program", .home = odd, .plan_id = "a'; exit 9; 'b", .cells = {}, .on_note = {}};
  const std::string script = slurm_script(call, odd, {1, 3});
  write_file(odd / "script.sh", script);
  write_file(home / "copy.sh", script);  // Slurm runs a copy
  const auto run_task = [&](int place, int restarts) {
    return run_command({"env", join_text("SLURM_ARRAY_TASK_ID=", place), join_text("SLURM_RESTART_COUNT=", restarts),
                        "SLURM_ARRAY_JOB_ID=12", "SLURMD_NODENAME=s1", "sh", (home / "copy.sh").string()});
  };
  EXPECT_EQ(ended_with(run_task(1, 0).status), "exit code 5");
  EXPECT_EQ(read_file(odd / "3.txt"), "job 12_1 on s1\n[cell]\n[" + odd.string() +
                                          "]\n[3]\n[--plan-id]\n[a'; exit 9; 'b]\n[--quiet]\n[--job]\n[job 12_1]\n");
  run_task(0, 1);
  EXPECT_THAT(read_file(odd / "1.txt"), HasSubstr("[--take-over]"));
  fs::remove(odd / "script.sh");
  fs::remove(odd / "1.txt");
  EXPECT_EQ(ended_with(run_task(0, 0).status), "exit code 72");
  EXPECT_FALSE(fs::exists(odd / "1.txt"));
}

}  // namespace
}  // namespace headshare
