#include "headshare/base/proc.h"

#include <gtest/gtest.h>

#include "headshare/base/file.h"
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

TEST(PeakMemory, IsTheWholeProcess) { EXPECT_GT(peak_memory_bytes(), 1 << 20); }

}  // namespace
}  // namespace headshare
