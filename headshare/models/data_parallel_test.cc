#include "headshare/models/data_parallel.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

constexpr SharedModel kGpt2Sizes = {.parameters = 124'000'000, .embedding = 38'000'000};

DataParallelOptions on_a_cluster() {
  DataParallelOptions options;
  options.bandwidth = 10;
  options.latency = 30;
  options.speed = 20'000;
  options.step_tokens = 500'000;
  return options;
}

TEST(DataParallelTest, OneWorkerWaitsForNobody) {
  const WorkerCost alone = worker_cost(kGpt2Sizes, 1, on_a_cluster());
  EXPECT_DOUBLE_EQ(alone.seconds, 25);
  EXPECT_EQ(alone.waiting, 0);
  EXPECT_EQ(alone.efficiency, 1);
  EXPECT_EQ(alone.bytes, 16.0 * 124e6);
  EXPECT_EQ(alone.sharded_bytes, alone.bytes);
  EXPECT_EQ(alone.sharded_seconds, alone.seconds);
}

// One bucket of 1 MB over two workers at 8 Mbit/s: each sends half of it twice, a second in all, and waits for two
// messages of a tenth of a second. Nothing hides the last bucket. Three small sums wait for two messages each.
TEST(DataParallelTest, OneBucketByHand) {
  DataParallelOptions options = on_a_cluster();
  options.bandwidth = 0.008;
  options.latency = 100'000;
  const WorkerCost pair = worker_cost({.parameters = 250'000, .embedding = 100'000}, 2, options);
  EXPECT_NEAR(pair.waiting, 1.8, 1e-12);
  EXPECT_NEAR(pair.seconds, 14.3, 1e-12);
  EXPECT_NEAR(pair.efficiency, 25 / 28.6, 1e-12);
  EXPECT_NEAR(pair.sharded_seconds, 14.3 + 1.2, 1e-12);  // two broadcasts of half of the parameters
  EXPECT_EQ(pair.bytes, 20 * 250'000);
  EXPECT_EQ(pair.sharded_bytes, 16 * 250'000);
}

// Follows the buckets one by one: each is summed when it is complete and the sum before it is done.
double simulated_waiting(double backward, int buckets, double one_sum, double last_sum) {
  double end = 0;
  for (int k = 1; k <= buckets; ++k) end = std::max(end, backward * k / buckets) + one_sum;
  return std::max(end, backward) + last_sum - backward;
}

TEST(DataParallelTest, WaitsAsLongAsASimulation) {
  for (const double bandwidth : {0.5, 5.0, 10.0, 20.0, 400.0}) {
    for (const int64_t workers : {2, 3, 8, 64, 1000}) {
      DataParallelOptions options = on_a_cluster();
      options.bandwidth = bandwidth;
      const double n = static_cast<double>(workers);
      const auto sum = [&](double bytes) {
        return 2 * ((n - 1) / n * bytes / (bandwidth * 1e9 / 8) + (n - 1) * 30e-6);
      };
      // 86 million numbers fill 14 buckets of at most 25 MiB.
      const double expected = simulated_waiting(2.0 / 3 * 25 / n, 14, sum(4 * 86e6 / 14), sum(4 * 38e6)) + 3 * sum(0);
      EXPECT_NEAR(worker_cost(kGpt2Sizes, workers, options).waiting, expected, 1e-9 * (1 + expected))
          << bandwidth << " Gbit/s, " << workers;
    }
  }
}

TEST(DataParallelTest, OnlyTheLastPartOfAShareHidesSums) {
  DataParallelOptions options = on_a_cluster();
  const double at_once = worker_cost(kGpt2Sizes, 8, options).waiting;
  options.worker_tokens = 1000;
  EXPECT_GT(worker_cost(kGpt2Sizes, 8, options).waiting, at_once);
  options.worker_tokens = 1'000'000;  // more than the share
  EXPECT_EQ(worker_cost(kGpt2Sizes, 8, options).waiting, at_once);
}

TEST(DataParallelTest, ATreeWaitsForFewerMessages) {
  DataParallelOptions options = on_a_cluster();
  options.bandwidth = 1e6;    // only messages count,
  options.worker_tokens = 1;  // and nothing hides them
  const double ring = worker_cost(kGpt2Sizes, 1024, options).waiting;
  options.all_reduce = AllReduce::kTree;
  EXPECT_NEAR(ring / worker_cost(kGpt2Sizes, 1024, options).waiting, 1023 / 10.0, 0.3);
  options.all_reduce = AllReduce::kRing;
  const double pair = worker_cost(kGpt2Sizes, 2, options).waiting;
  options.all_reduce = AllReduce::kTree;
  EXPECT_EQ(worker_cost(kGpt2Sizes, 2, options).waiting, pair);
}

TEST(DataParallelTest, ParametersAreBroadcastDownATree) {
  DataParallelOptions options = on_a_cluster();
  const WorkerCost eight = worker_cost(kGpt2Sizes, 8, options);
  const double once = 4 * 124e6 / (10e9 / 8) + 8 * 30e-6;
  EXPECT_NEAR(eight.sharded_seconds - eight.seconds, 3 * once, 1e-9);
}

TEST(DataParallelTest, UpdatesAreRepeatedOrSharded) {
  DataParallelOptions options = on_a_cluster();
  const WorkerCost without = worker_cost(kGpt2Sizes, 8, options);
  options.update_time = 400;
  const WorkerCost with = worker_cost(kGpt2Sizes, 8, options);
  EXPECT_NEAR(with.seconds - without.seconds, 0.4, 1e-12);
  // The owner of the embedding moves 38 of 124 parts, and keeps as many moments.
  EXPECT_NEAR(with.sharded_seconds - without.sharded_seconds, 0.4 * 38 / 124, 1e-12);
  EXPECT_NEAR(with.sharded_bytes, 12 * 124e6 + 8 * 38e6, 1);
  EXPECT_NEAR(worker_cost(kGpt2Sizes, 2, options).sharded_bytes, 16 * 124e6, 1);
}

TEST(DataParallelTest, FindsWhereWorkersStopPaying) {
  const DataParallelOptions options = on_a_cluster();
  const int64_t most = most_workers_that_pay(kGpt2Sizes, 256, options);
  EXPECT_GE(worker_cost(kGpt2Sizes, most, options).efficiency, 0.5);
  EXPECT_LT(worker_cost(kGpt2Sizes, most + 1, options).efficiency, 0.5);
  EXPECT_GT(most_workers_that_pay({.parameters = 31'000'000}, 256, options), most);  // fewer parameters, shorter sums
  EXPECT_EQ(most_workers_that_pay({.parameters = 1}, 125'000, options), 4);          // a sequence each
}

TEST(DataParallelTest, SaysWhatIsMissing) {
  DataParallelOptions options = on_a_cluster();
  options.speed.reset();
  EXPECT_THAT(error_message([&] { worker_cost(kGpt2Sizes, 8, options); }),
              HasSubstr("--workers needs --speed too: the tokens/s of one worker, which headshare train prints"));
}

}  // namespace
}  // namespace headshare
