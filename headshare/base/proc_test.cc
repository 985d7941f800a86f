#include "headshare/base/proc.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "headshare/base/files/file.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

TEST(ProcBytes, ReadsTheEntryOfThatName) {
  const TemporaryDirectory directory;
  const std::string path = (directory / "status").string();
  write_file(path, "Name:\ta b c\nVmHWM:\t  12 kB\nVmRSS: 7 kB\nThreads:\t1\n");
  EXPECT_EQ(proc_bytes(path, "VmRSS"), 7 * 1024);
  EXPECT_EQ(proc_bytes(path, "VmHWM"), 12 * 1024);
  EXPECT_EQ(proc_bytes(path, "Name"), std::nullopt);
  EXPECT_EQ(proc_bytes(path, "VmR"), std::nullopt);
  EXPECT_EQ(proc_bytes(path + "x", "VmRSS"), std::nullopt);
}

// Two threads share one core: each waits while the other one runs. The whole test stays on that core.
TEST(WaitMeter, SeesThatACoreIsShared) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  const WaitMeter meter(1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) {
    }
  });  // inherits the core
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (std::chrono::steady_clock::now() < until) {
  }
  const std::optional<double> share = meter.share();
  stop = true;
  other.join();
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  if (!share) GTEST_SKIP() << "this system has no schedstat";
  EXPECT_GT(*share, 0.5);  // one of the two always waits
  EXPECT_EQ(WaitMeter(100'000).share(), std::nullopt);
}

TEST(PeakMemory, IsTheWholeProcess) { EXPECT_GT(peak_memory_bytes(), 1 << 20); }

}  // namespace
}  // namespace headshare
