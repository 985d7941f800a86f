#include "headshare/base/cuda_driver.h"

#include <gmock/gmock.h>

namespace headshare {
namespace {

TEST(CudaDriver, VersionsAreReadAsTheDriverWritesThem) {
  EXPECT_EQ(cuda_version_text(13000), "13.0");
  EXPECT_EQ(cuda_version_text(12080), "12.8");
  EXPECT_EQ(driver_version_in("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
                              "GCC version:  gcc version 12.2.0\n"),
            "580.95.05");
  EXPECT_EQ(driver_version_in("NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44\n"),
            "470.256.02");
  EXPECT_EQ(driver_version_in(""), "");
}

TEST(CudaDriver, OldCardsMultiplyNoBf16) {
  EXPECT_TRUE((GraphicsCard{.major = 9}).multiplies_bf16());
  EXPECT_TRUE((GraphicsCard{.major = 8, .minor = 6}).multiplies_bf16());
  EXPECT_FALSE((GraphicsCard{.major = 7, .minor = 5}).multiplies_bf16());
}

// The driver is asked for whatever this machine has, twice: the answer stays.
TEST(CudaDriver, AnswersOnceAndThrowsNothing) {
  const CudaDriver& driver = cuda_driver();
  EXPECT_EQ(&driver, &cuda_driver());
  if (driver.cuda == 0) EXPECT_TRUE(driver.cards.empty());
  for (const GraphicsCard& card : driver.cards) {
    EXPECT_FALSE(card.name.empty());
    EXPECT_GT(card.memory_bytes, 0);
    EXPECT_GT(card.major, 0);
  }
}

}  // namespace
}  // namespace headshare
