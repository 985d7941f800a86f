#include "headshare/base/memory.h"

#include <gmock/gmock.h>

#include <limits>

#include "headshare/base/files/file.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

TEST(MemoryTest, MemoryThatIsNotThereIsRefusedWithTheEstimate) {
  const double available = available_memory_bytes();
  EXPECT_GT(available, 1 << 20);
  EXPECT_EQ(error_message([&] { check_memory(1, "a byte", ""); }), "no error");
  const std::string message =
      error_message([] { check_memory(0x1p60, "training", "use a smaller --batch-size or --context"); });
  EXPECT_THAT(message, HasSubstr("training needs about "));
  EXPECT_THAT(message, HasSubstr(" are available; use a smaller --batch-size or --context"));
}

TEST(MemoryTest, AGroupLeavesItsLimitLessWhatIsUsedWithoutIdlePagesOfFiles) {
  const TemporaryDirectory root;
  const auto group = [&](const fs::path& path, const std::string& limit, const std::string& used) {
    make_directories(root.path() / path);
    write_file(root.path() / path / "memory.max", limit + "\n");
    write_file(root.path() / path / "memory.current", used + "\n");
    write_file(root.path() / path / "memory.stat", "anon 200\ninactive_file 300\nactive_file 100\n");
  };
  group("job", "1000", "600");
  EXPECT_EQ(memory_left_in_cgroup(root.path(), "/job"), 700);
  group("job/step", "max", "600");
  EXPECT_EQ(memory_left_in_cgroup(root.path(), "/job/step"), 700);
  group("job/step", "500", "600");
  EXPECT_EQ(memory_left_in_cgroup(root.path(), "/job/step"), 200);
  group("job/step", "100", "600");
  EXPECT_EQ(memory_left_in_cgroup(root.path(), "/job/step"), 0);
  EXPECT_EQ(memory_left_in_cgroup(root.path(), "/"), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace headshare
