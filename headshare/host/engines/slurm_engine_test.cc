#include "headshare/host/engines/slurm_engine.h"

#include <gmock/gmock.h>

#include <numeric>

#include "headshare/base/notice.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

// The fixture answers as Slurm does, and notes what it was asked.
class SlurmEngineTest : public testing::Test {
 protected:
  SlurmEngineTest() {
    before_ = set_notice_handler([this](const std::string& note) { notes_.push_back(note); });
    call_ = {.program = "/opt/head share/headshare",
             .home = home_.path(),
             .plan_id = "the-plan",
             .cells = std::vector<std::string>(1001, "mha-seed0"),
             .threads = 2,
             .on_note = [this](size_t, const std::string& note) { notes_.push_back(note); }};
  }
  ~SlurmEngineTest() override { set_notice_handler(before_); }

  SlurmEngine engine(const std::string& options = "") {
    return SlurmEngine(options, call_, [this](const std::vector<std::string>& words) { return answer(words); });
  }

  static bool is_sbatch(const std::vector<std::string>& words) {
    return std::find(words.begin(), words.end(), "sbatch") != words.end();
  }

  CommandResult answer(const std::vector<std::string>& words) {
    asked_.push_back(words);
    if (words[0] == "scancel") {
      queue_.clear();
      return {};
    }
    if (!refusal_.error.empty()) return refusal_;
    if (is_sbatch(words)) {
      folders_[++arrays_] = fs::path(words.back()).parent_path();
      return {.out = std::to_string(arrays_) + "\n"};
    }
    return {.out = queue_};
  }

  void log(const std::string& text, size_t cell = 7, int array = 1) {
    write_file(folders_.at(array) / (std::to_string(cell) + ".txt"), text);
  }

  // Lets the queue show this for the first task.
  void show(const std::string& state, int status = 0, const std::string& node = "s1",
            const std::string& reason = "None") {
    queue_ = join_text("1|0|", state, "|", status, "|0|", node, "|", reason, "|\n");
  }

  // Polls until the engine has asked Slurm.
  std::vector<EndedCell> look(SlurmEngine& engine) {
    std::vector<EndedCell> over;
    for (const size_t before = asked_.size(); asked_.size() == before;)
      over = engine.poll(std::chrono::milliseconds(1));
    return over;
  }

  // Returns how a job ended that the queue shows so.
  EndedCell ended(const std::string& state, int status, const std::string& said = "job 1_0 on s1\n") {
    SlurmEngine made = engine();
    arrays_ = 0;
    made.start({7});
    show(state, status);
    if (!said.empty()) log(said);
    const std::vector<EndedCell> over = look(made);
    EXPECT_THAT(over, SizeIs(1));
    return over.at(0);
  }

  TemporaryDirectory home_;
  EngineCall call_;
  std::vector<std::vector<std::string>> asked_;
  std::vector<std::string> notes_;
  std::string queue_;
  CommandResult refusal_;
  int arrays_ = 0;
  std::map<int, fs::path> folders_;
  NoticeHandler before_;
};

TEST_F(SlurmEngineTest, AsksForWhatACellNeeds) {
  call_.seconds_per_cell = 600;
  call_.bytes_per_cell = 1 << 30;
  call_.gpu = true;
  SlurmEngine made = engine("throttle=4,partition=gpu");
  made.start({1, 3});
  const std::vector<std::string>& words = asked_.at(0);
  for (const char* word : {"--array=0-1%4", "--requeue", "--parsable", "--partition=gpu", "--cpus-per-task=2",
                           "--time=40", "--mem=2560M", "--gpus=1", "--signal=B:TERM@60"}) {
    EXPECT_THAT(words, Contains(word));
  }
  EXPECT_THAT(words.back(), AllOf(StartsWith((home_.path() / "jobs/").string()), EndsWith("/script.sh")));
  // A comparison that is itself a job, and was queued again, passes its environment on.
  EXPECT_EQ(std::vector<std::string>(words.begin(), words.begin() + 4),
            (std::vector<std::string>{"env", "-u", "SLURM_RESTART_COUNT", "sbatch"}));
}

TEST_F(SlurmEngineTest, TheUsersWordsStandInsteadOfEstimates) {
  call_.seconds_per_cell = 600;
  call_.bytes_per_cell = 1 << 30;
  call_.gpu = true;
  SlurmEngine made = engine("gres=gpu:a100:1,time=5,cpus-per-task=8,mem-per-cpu=1G");
  made.start({3});
  for (const char* word : {"--gpus=1", "--cpus-per-task=2", "--time=40"})
    EXPECT_THAT(asked_.at(0), Not(Contains(word)));
  EXPECT_THAT(asked_.at(0), Not(Contains(HasSubstr("--mem="))));
  EXPECT_THAT(asked_.at(0), AllOf(Contains("--time=5"), Contains("--gres=gpu:a100:1")));
}

TEST_F(SlurmEngineTest, SlurmsVariablesStandInsteadOfEstimates) {
  call_.bytes_per_cell = 1 << 30;
  call_.gpu = true;
  ::setenv("SBATCH_MEM_PER_CPU", "1G", 1);
  ::setenv("SBATCH_GRES", "gpu:a100:1", 1);
  SlurmEngine made = engine();
  made.start({3});
  ::unsetenv("SBATCH_MEM_PER_CPU");
  ::unsetenv("SBATCH_GRES");
  EXPECT_THAT(asked_.at(0), AllOf(Not(Contains(HasSubstr("--mem="))), Not(Contains("--gpus=1"))));
}

// Slurm takes arrays of 1,000 tasks.
TEST_F(SlurmEngineTest, LongComparisonsAreSeveralArraysOneAfterAnother) {
  std::vector<size_t> cells(1001);
  std::iota(cells.begin(), cells.end(), size_t{0});
  SlurmEngine made = engine();
  made.start(cells);
  ASSERT_THAT(asked_, SizeIs(2));
  EXPECT_THAT(asked_[0], Contains("--array=0-999"));
  EXPECT_THAT(asked_[1], AllOf(Contains("--array=0-0"), Contains("--dependency=afterany:1")));
}

TEST_F(SlurmEngineTest, FollowsAnArray) {
  arrays_ = 3;
  SlurmEngine made = engine();
  made.start({5, 7, 8, 9});
  log("job 4_1 on s2\nnote: slow\nerror: the loss is no number\n\n", 7, 4);
  queue_ =
      "4|0|PENDING|0|1||BeginTime|\n4|1|FAILED|768|0|s2|NonZeroExitCode|\n4|2|RUNNING|0|0|s2|None|\n"
      "4|3|PENDING|0|0||Resources|\n";
  const std::vector<EndedCell> over = look(made);
  ASSERT_THAT(over, SizeIs(1));
  EXPECT_EQ(over[0].cell, 7u);
  EXPECT_EQ(over[0].code, 3);
  EXPECT_EQ(over[0].how, "the loss is no number");
  EXPECT_EQ(over[0].job + over[0].machine, "job 4_1s2");
  EXPECT_FALSE(over[0].lost);
  EXPECT_THAT(notes_, ElementsAre("Slurm took job 4_0 (mha-seed0) from its node and queued it again", "slow"));
  EXPECT_THAT(look(made), IsEmpty());  // nothing is told twice
  EXPECT_THAT(notes_, SizeIs(2));
  queue_.clear();
  EXPECT_THAT(look(made), SizeIs(3));  // Slurm has forgotten them
}

TEST_F(SlurmEngineTest, SaysHowAJobEnded) {
  EXPECT_EQ(ended("COMPLETED", 0).how, "");
  EXPECT_EQ(ended("FAILED", 9).code, -1);
  for (const EndedCell& killed : {ended("OUT_OF_MEMORY", 0), ended("FAILED", 9)}) {
    EXPECT_THAT(killed.how, HasSubstr("slurm:mem="));
    EXPECT_FALSE(killed.lost);
  }
  EXPECT_THAT(ended("FAILED", 127 << 8).how,
              AllOf(HasSubstr("/opt/head share/headshare"), HasSubstr("under that name")));
  EXPECT_EQ(ended("FAILED", 1 << 8, "job 1_0 on s1\nerror: bad\n").how, "bad");
  EXPECT_FALSE(ended("FAILED", 1 << 8).lost);
  EXPECT_FALSE(ended("CANCELLED", 15).lost);
  EXPECT_EQ(ended("FAILED", 75 << 8).code, 75);
  for (const char* taken : {"NODE_FAIL", "PREEMPTED", "TIMEOUT"}) EXPECT_TRUE(ended(taken, 0, "").lost) << taken;
  EXPECT_TRUE(ended("FAILED", 130 << 8).lost);  // asked to stop before its time limit
  notes_.clear();
  EXPECT_EQ(ended("FAILED", 130 << 8, "job 1_0 on s1\nerror: old\njob 1_0 on s2\nnote: stopped\n").how, "stopped");
  EXPECT_THAT(notes_, IsEmpty());  // the coordinator says it
}

TEST_F(SlurmEngineTest, WhereTheFolderIsNotSharedNothingIsStartedAgain) {
  const EndedCell over = ended("FAILED", 72 << 8, /*said=*/"");
  EXPECT_EQ(over.how, "it ended with exit code 72");
  EXPECT_TRUE(over.unshared);
  EXPECT_FALSE(over.lost);
}

// A log that a network file system shows late says nothing of the folder.
TEST_F(SlurmEngineTest, AJobWithoutALogIsNotTakenForOneWithoutTheFolder) {
  for (const EndedCell& over : {ended("COMPLETED", 0, /*said=*/""), ended("FAILED", 2 << 8, /*said=*/"")}) {
    EXPECT_FALSE(over.unshared);
    EXPECT_FALSE(over.lost);
  }
}

TEST_F(SlurmEngineTest, ANodeWithoutTheProgramGetsNoMoreJobs) {
  SlurmEngine made = engine();
  made.start({7});
  log("job 1_0 on s1\nscript: exec: not found\n");
  show("FAILED", 127 << 8);
  const std::vector<EndedCell> over = look(made);
  ASSERT_THAT(over, SizeIs(1));
  EXPECT_TRUE(over[0].lost);
  made.start({7});
  EXPECT_THAT(asked_.back(), Contains("--exclude=s1"));
}

TEST_F(SlurmEngineTest, OneNodeOfManyWithoutTheFolderCostsItsCells) {
  arrays_ = 3;
  SlurmEngine made = engine();
  made.start({5, 7, 8});
  log("job 4_1 on s2\n", 7, 4);
  queue_ = "4|0|RUNNING|0|0|s1|None|\n4|1|COMPLETED|0|0|s2|None|\n4|2|FAILED|18432|0|s3|NonZeroExitCode|\n";
  const std::vector<EndedCell> over = look(made);
  ASSERT_THAT(over, SizeIs(2));
  EXPECT_TRUE(over[1].lost);
  EXPECT_FALSE(over[1].unshared);
}

TEST_F(SlurmEngineTest, ReasonsToWaitThatMayNotPassAreToldOnce) {
  SlurmEngine made = engine();
  made.start({7});
  show("PENDING", 0, "", "Resources");
  look(made);
  EXPECT_THAT(notes_, IsEmpty());
  show("PENDING", 0, "", "PartitionTimeLimit");
  look(made);
  look(made);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("PartitionTimeLimit")));
  show("FAILED", 1, "", "BadConstraints");
  EXPECT_EQ(look(made).at(0).how, "Slurm refused it: BadConstraints");
}

TEST_F(SlurmEngineTest, ARefusalHasSlurmsWords) {
  refusal_ = {.status = 256,
              .error =
                  "sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: "
                  "Invalid partition name specified\n"};
  SlurmEngine made = engine("partition=nope");
  EXPECT_THAT(error_message([&] { made.start({7}); }),
              AllOf(HasSubstr("jobs: invalid partition specified: nope; Batch job"), HasSubstr("--partition=nope")));
  EXPECT_TRUE(fs::is_empty(home_.path() / "jobs"));
}

TEST_F(SlurmEngineTest, AControllerThatDoesNotAnswerIsWaitedFor) {
  SlurmEngine made = engine();
  made.start({7});
  refusal_ = {.status = 256, .error = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"};
  EXPECT_THAT(look(made), IsEmpty());
  made.start({8});
  look(made);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("Slurm does not answer (Unable to contact")));
  refusal_ = {};
  asked_.clear();
  show("RUNNING");
  look(made);
  EXPECT_THAT(asked_.at(0), AllOf(Contains("scancel"), Contains(StartsWith("--name=headshare "))));  // it may be there
  EXPECT_TRUE(is_sbatch(asked_.at(1)));
  EXPECT_THAT(asked_.at(2), Contains("--jobs=1,2"));
}

TEST_F(SlurmEngineTest, AnArrayWhoseNumberIsNotKnownIsCancelledByItsName) {
  refusal_ = {.status = 256, .error = "sbatch: error: Batch job submission failed: Socket timed out on send/recv\n"};
  {
    SlurmEngine made = engine();
    EXPECT_THAT(error_message([&] { made.start({7}); }), HasSubstr("timed out"));
  }
  const std::vector<std::string>& words = asked_.at(0);
  const auto name =
      std::find_if(words.begin(), words.end(), [](const std::string& one) { return one.starts_with("--job-name="); });
  ASSERT_NE(name, words.end());
  EXPECT_THAT(asked_.at(1), ElementsAre("scancel", "--quiet", name->substr(0, 2) + name->substr(6)));
}

TEST_F(SlurmEngineTest, StopCancelsAndWaits) {
  SlurmEngine made = engine();
  made.start({7});
  show("RUNNING");
  made.stop();
  EXPECT_THAT(asked_.at(1), ElementsAre("scancel", "--quiet", "1"));
  EXPECT_EQ(asked_.at(2).at(0), "squeue");
}

TEST_F(SlurmEngineTest, JobsDoNotOutliveTheEngine) {
  { engine().start({7}); }
  EXPECT_THAT(asked_.at(1), ElementsAre("scancel", "--quiet", "1"));
}

}  // namespace
}  // namespace headshare
