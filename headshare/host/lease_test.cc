#include "headshare/host/lease.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>

#include "headshare/base/json/json_input.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;
using Verdict = LeaseWatch::Verdict;

constexpr LeaseTiming kNever{.beat_seconds = 1000};
constexpr LeaseTiming kQuick{.beat_seconds = 0.002, .beats_to_wait = 10};

class LeaseTest : public testing::Test {
 protected:
  std::unique_ptr<HeldLease> claim(const std::optional<Lease>& last, LeaseTiming timing = kNever) {
    return HeldLease::claim({.folder = home_.path(), .cell = "mha-seed1", .comparison = "id", .timing = timing}, last);
  }
  std::optional<Lease> last() const { return last_lease(home_.path(), "mha-seed1"); }
  fs::path file(int64_t number) const { return home_.path() / join_text("mha-seed1.lease-", number); }

  // Writes the lease of another machine.
  void write_foreign(int64_t number, int64_t beat, double clock = 1e9) {
    nlohmann::json lease = nlohmann::json::parse(read_file(file(1)));
    lease["owner"]["machine"] = "another boot";
    lease["owner"]["host"] = "s2";
    lease["beat"] = beat;
    lease["clock"] = clock;
    write_file(file(number), lease.dump());
  }

  const TemporaryDirectory home_;
};

TEST_F(LeaseTest, OneProcessClaimsANumber) {
  const auto mine = claim(std::nullopt);
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->number(), 1);
  EXPECT_FALSE(claim(std::nullopt));  // the same number
  for (const auto& entry : fs::directory_iterator(home_.path())) EXPECT_EQ(entry.path(), file(1));
}

TEST_F(LeaseTest, WhoIsOvertakenNoticesAndNotesNothing) {
  const auto first = claim(std::nullopt);
  EXPECT_TRUE(first->renew());
  EXPECT_EQ(first->number(), 2);
  const auto second = claim(last());
  EXPECT_EQ(second->number(), 3);
  EXPECT_FALSE(first->renew());
  EXPECT_FALSE(first->end(LeaseState::kFailed, "too late"));
  EXPECT_EQ(last()->state, LeaseState::kRunning);
  EXPECT_TRUE(second->end(LeaseState::kFailed, "no luck"));
  EXPECT_EQ(last()->reason, "no luck");
}

TEST_F(LeaseTest, BeatsCarryTheProgressAndFindOutAboutAnotherOwner) {
  const auto mine = claim(std::nullopt, kQuick);
  mine->show({.doing = "training", .step = 3, .total_steps = 9, .loss = 2.5, .tokens_per_second = 100});
  while (last()->progress.step != 3) {
  }
  EXPECT_EQ(last()->progress.doing, "training");
  EXPECT_FALSE(mine->lost());
  write_foreign(2, 0);
  while (!mine->lost()) {
  }
}

TEST_F(LeaseTest, ADeletedComparisonDoesNotComeBack) {
  const auto mine = claim(std::nullopt, kQuick);
  while (last()->beat == 0) {
  }
  fs::rename(file(1), home_.path() / "elsewhere");
  while (!mine->lost()) {
  }
  EXPECT_FALSE(fs::exists(file(1)));
}

TEST_F(LeaseTest, AnOwnerIsAliveOnceItsBeatChanges) {
  claim(std::nullopt);
  LeaseWatch watch(kNever);
  write_foreign(2, 1);
  EXPECT_EQ(watch.look(*last()), Verdict::kUnknown);
  EXPECT_EQ(watch.look(*last()), Verdict::kUnknown);
  write_foreign(2, 2);
  EXPECT_EQ(watch.look(*last()), Verdict::kAlive);
  write_foreign(3, 7);  // another owner
  EXPECT_EQ(watch.look(*last()), Verdict::kUnknown);
}

TEST_F(LeaseTest, BeatsThatDoNotComeAreCountedByTheWatchersOwnClock) {
  claim(std::nullopt);
  write_foreign(2, 1, /*clock=*/4e9);  // far ahead
  LeaseWatch watch(kQuick);
  const auto began = std::chrono::steady_clock::now();
  while (watch.look(*last()) != Verdict::kStale) {
  }
  EXPECT_GE(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(), kQuick.stale_seconds());
}

TEST_F(LeaseTest, AClockThatDiffersIsMentionedOnce) {
  claim(std::nullopt);
  LeaseWatch watch(kNever);
  write_foreign(2, 1, 4e9);
  watch.look(*last());
  EXPECT_FALSE(watch.clock_difference());  // an old lease has an old time
  write_foreign(2, 2, 4e9);
  watch.look(*last());
  EXPECT_GT(watch.clock_difference().value_or(0), 1e9);
  EXPECT_FALSE(watch.clock_difference());
}

TEST_F(LeaseTest, AProcessOfThisMachineThatIsGoneIsNotWaitedFor) {
  auto mine = claim(std::nullopt);
  EXPECT_EQ(LeaseWatch(kNever).look(*last()), Verdict::kUnknown);
  nlohmann::json lease = nlohmann::json::parse(read_file(file(1)));
  lease["owner"]["started"] = lease["owner"]["started"].get<int64_t>() + 1;  // another process has the number now
  write_file(file(1), lease.dump());
  EXPECT_EQ(LeaseWatch(kNever).look(*last()), Verdict::kStale);
}

TEST_F(LeaseTest, AnEndedLeaseIsFree) {
  claim(std::nullopt)->end(LeaseState::kStopped);
  EXPECT_EQ(LeaseWatch(kNever).look(*last()), Verdict::kStale);
}

TEST_F(LeaseTest, ADamagedLeaseHasANumberAndBecomesStale) {
  write_file(file(4), "{\"state\": \"runn");
  EXPECT_THAT(error_message([&] { read_lease(file(4), 4); }), HasSubstr("lease-4"));
  const std::optional<Lease> lease = last();
  ASSERT_TRUE(lease && lease->damaged);
  LeaseWatch watch(kQuick);
  EXPECT_EQ(watch.look(*lease), Verdict::kUnknown);
  while (watch.look(*lease) != Verdict::kStale) {
  }
  EXPECT_EQ(claim(lease)->number(), 5);
}

TEST_F(LeaseTest, OnlyTheLastLeaseOfAFinishedCellStays) {
  write_file(file(10).string() + ".partial-7", "");
  write_file(file(10).string() + ".claim-ab", "");
  write_file(file(11).string() + ".claim-ab", "");  // of a process that claims the cell now
  for (const int64_t number : {1, 2, 10}) write_file(file(number), "");
  write_file(home_.path() / "mha-seed1.json", "{}");
  write_file(home_.path() / "mha-seed10.lease-1", "");
  sweep_leases(home_.path(), "mha-seed1");
  EXPECT_FALSE(fs::exists(file(1)) || fs::exists(file(2)) || fs::exists(file(10).string() + ".partial-7"));
  EXPECT_FALSE(fs::exists(file(10).string() + ".claim-ab"));
  EXPECT_TRUE(fs::exists(file(11).string() + ".claim-ab"));
  EXPECT_TRUE(fs::exists(file(10)) && fs::exists(home_.path() / "mha-seed10.lease-1"));
}

TEST(LeaseTimingTest, TheEnvironmentSaysHowLongABeatIs) {
  EXPECT_EQ(lease_timing().stale_seconds(), 90);
  ::setenv("HEADSHARE_BEAT", "0.5", 1);
  EXPECT_EQ(lease_timing().stale_seconds(), 45);
  ::setenv("HEADSHARE_BEAT", "soon", 1);
  EXPECT_THAT(error_message([] { lease_timing(); }), HasSubstr("HEADSHARE_BEAT is 'soon'"));
  ::unsetenv("HEADSHARE_BEAT");
}

}  // namespace
}  // namespace headshare
