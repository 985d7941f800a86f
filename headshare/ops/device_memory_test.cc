#include "headshare/ops/device_memory.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

constexpr double kGiB = 1 << 30;

TEST(DeviceMemory, WhatDoesNotFitIsRefusedWithAllNumbers) {
  const DeviceMemory memory{.free = 10 * kGiB, .total = 80 * kGiB};
  const auto check = [&](double needed) {
    return error_message(
        [&] { check_device_memory(needed, memory, "cuda:1", "training this model", "use a smaller --batch-size"); });
  };
  EXPECT_EQ(check(10 * kGiB), "no error");
  EXPECT_EQ(check(20 * kGiB),
            "training this model needs about 20.0 GiB of the memory of cuda:1, and 10.0 GiB of its 80.0 GiB are free; "
            "use a smaller --batch-size");
}

TEST(DeviceMemory, OfTheCpuIsThatOfTheMachine) {
  EXPECT_FALSE(device_memory(c10::Device(c10::kCPU)).has_value());
  EXPECT_EQ(peak_device_bytes(c10::Device(c10::kCPU)), 0);
  EXPECT_THAT(error_message([] { check_memory_of(c10::Device(c10::kCPU), 0x1p60, "training", "use less"); }),
              testing::HasSubstr("are available; use less"));
}

TEST(DeviceMemory, OnCudaCountsWhatTensorsTake) {
  HS_NEEDS_CUDA();
  const c10::Device card("cuda:0");
  const double before = device_memory(card)->free;
  const Tensor large = at::empty({64 << 20}, at::device(card).dtype(at::kByte));
  EXPECT_GE(peak_device_bytes(card), 64 << 20);
  EXPECT_LE(device_memory(card)->free, before - (60 << 20));
  EXPECT_GT(device_memory(card)->total, before);
  const int64_t taken = device_bytes_of(card, [&] { at::empty({32 << 20}, large.options()); });
  EXPECT_GE(taken, 32 << 20);
  EXPECT_LT(taken, 64 << 20);  // what was there before does not count
}

}  // namespace
}  // namespace headshare
