#include "headshare/ops/tensor_memory.h"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <gmock/gmock.h>

#include <cstring>
#include <thread>

#include "headshare/ops/allocation_meter.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

using at::Tensor;

constexpr size_t kMiB = size_t{1} << 20;

TEST(BlockPool, ABlockServesTheNextOfItsSize) {
  BlockPool pool;
  void* first = pool.take(5 * kMiB);
  std::memset(first, 1, 5 * kMiB);
  EXPECT_TRUE(pool.give_back(first));
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_EQ(pool.take(5 * kMiB - 100), first);  // about the same size
  EXPECT_NE(pool.take(5 * kMiB), first);
  EXPECT_EQ(pool.held(), 10 * kMiB);
  EXPECT_EQ(pool.in_use(), 10 * kMiB);
}

TEST(BlockPool, HoldsLittleMoreThanWasEverInUse) {
  BlockPool pool;
  // The sizes are a hundred, one after another: kept, they would be 500 MiB.
  for (size_t size = kMiB; size <= 10 * kMiB; size += kMiB / 11) {
    void* one = pool.take(size);
    void* other = pool.take(size);
    EXPECT_TRUE(pool.give_back(one));
    EXPECT_TRUE(pool.give_back(other));
    EXPECT_LE(pool.held(), 2 * size * 9 / 8 + kMiB);
  }
  EXPECT_EQ(pool.in_use(), 0U);
}

// A step's activations make room for its gradients in this way.
TEST(BlockPool, ALargeBlockServesSmallOnesAndIsWholeAgainAfterThem) {
  BlockPool pool;
  void* large = pool.take(8 * kMiB);
  EXPECT_TRUE(pool.give_back(large));
  auto* first = static_cast<char*>(pool.take(3 * kMiB));
  auto* second = static_cast<char*>(pool.take(5 * kMiB));
  EXPECT_EQ(first, large);
  EXPECT_EQ(second, first + 3 * kMiB);
  std::memset(first, 1, 3 * kMiB);
  std::memset(second, 2, 5 * kMiB);
  EXPECT_EQ(first[3 * kMiB - 1], 1);
  EXPECT_TRUE(pool.give_back(second));
  EXPECT_TRUE(pool.give_back(first));
  EXPECT_EQ(pool.take(8 * kMiB), large);
  EXPECT_EQ(pool.held(), 8 * kMiB);
}

// The system may place blocks side by side; they stay two.
TEST(BlockPool, NeighboursOfDifferentOriginsAreNotJoined) {
  BlockPool pool;
  std::vector<void*> blocks(6);
  for (void*& block : blocks) block = pool.take(kMiB);
  for (void* block : blocks) EXPECT_TRUE(pool.give_back(block));
  std::vector<void*> again(6);
  for (void*& block : again) block = pool.take(kMiB);
  EXPECT_THAT(again, testing::UnorderedElementsAreArray(blocks));
  EXPECT_EQ(pool.held(), 6 * kMiB);
}

TEST(BlockPool, TrimmedItHoldsWhatIsInUse) {
  BlockPool pool;
  void* lent = pool.take(kMiB);
  EXPECT_TRUE(pool.give_back(pool.take(3 * kMiB)));
  EXPECT_EQ(pool.held(), 4 * kMiB);
  pool.trim();
  EXPECT_EQ(pool.held(), kMiB);
  EXPECT_TRUE(pool.give_back(lent));
}

TEST(BlockPool, WhatIsNotItsOwnIsRefused) {
  BlockPool pool;
  int other = 0;
  EXPECT_FALSE(pool.give_back(&other));
  void* block = pool.take(kMiB);
  EXPECT_TRUE(pool.lent(block));
  EXPECT_TRUE(pool.give_back(block));
  EXPECT_FALSE(pool.lent(block));
  EXPECT_FALSE(pool.give_back(block));
}

TEST(BlockPool, MoreThanThereIsIsNull) {
  BlockPool pool;
  void* kept = pool.take(kMiB);
  EXPECT_TRUE(pool.give_back(kept));
  EXPECT_EQ(pool.take(size_t{1} << 50), nullptr);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(BlockPool, AnyThreadMayTakeAndGiveBack) {
  BlockPool pool;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (size_t i = 0; i < 500; ++i) {
        const size_t size = (1 + (i + t) % 7) * kMiB / 2;
        auto* block = static_cast<unsigned char*>(pool.take(size));
        block[0] = block[size - 1] = static_cast<unsigned char>(t);
        EXPECT_EQ(block[0], block[size - 1]);
        EXPECT_TRUE(pool.give_back(block));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(TensorMemory, IsReportedAsBefore) {
  keep_tensor_memory();
  const AllocationMeter meter;
  for (const int64_t size : {10, 1 << 20}) {  // from the heap, from the pool
    Tensor tensor = at::ones({size}, at::kFloat);
    EXPECT_EQ(meter.now(), 4 * size);
    EXPECT_EQ(tensor.sum().item<float>(), static_cast<float>(size));
    EXPECT_GT(meter.now(), 0);
    tensor.reset();
    EXPECT_EQ(meter.now(), 0) << size;
    void* raw = c10::GetCPUAllocator()->raw_allocate(static_cast<size_t>(size));
    c10::GetCPUAllocator()->raw_deallocate(raw);
    EXPECT_EQ(meter.now(), 0) << size;
  }
}

}  // namespace
}  // namespace headshare
