#include "headshare/base/memory.h"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace headshare
