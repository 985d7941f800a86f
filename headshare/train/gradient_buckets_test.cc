#include "headshare/train/gradient_buckets.h"

#include <gmock/gmock.h>

#include "headshare/train/thread_reducer.h"

namespace headshare {
namespace {

using testing::ElementsAre;

constexpr int64_t kTwoNumbers = 2 * sizeof(float);

Tensor numbers(double first, double second) {
  return at::tensor({first, second}, at::kFloat).requires_grad_();  // [2]
}

std::vector<float> gradient_of(const Tensor& parameter) {
  const Tensor gradient = parameter.grad().contiguous();
  return {gradient.data_ptr<float>(), gradient.data_ptr<float>() + gradient.numel()};
}

// The backward pass reaches the last parameter first, so that its bucket is sent before the pass is over.
TEST(GradientBucketsTest, BucketsAreSentWhileTheBackwardPassComputes) {
  run_together(2, [](ThreadReducer& reducer) {
    const Tensor first = numbers(1, 2), second = numbers(3, 4);
    GradientBuckets buckets({first, second}, reducer, kTwoNumbers);
    const double mine = reducer.rank() == 0 ? 1 : 10;
    for (const int64_t sent_early : {0, 2}) {  // what a pass adds is learnt in the first step
      for (const Tensor& one : {first, second}) one.mutable_grad().reset();
      const int64_t before = reducer.sums_begun;
      buckets.expect_last();
      (first * second * mine).sum().backward();
      EXPECT_EQ(reducer.sums_begun - before, sent_early);
      EXPECT_FALSE(buckets.send_rest());
      buckets.finish(/*again=*/false);
      EXPECT_THAT(gradient_of(first), ElementsAre(33, 44));
      EXPECT_THAT(gradient_of(second), ElementsAre(11, 22));
    }
  });
}

// A layer at several depths adds to its gradient several times in a pass.
TEST(GradientBucketsTest, AGradientThatChangesAfterItWasSentIsSentAgain) {
  run_together(2, [](ThreadReducer& reducer) {
    const Tensor shared = numbers(1, 2);
    GradientBuckets buckets({shared}, reducer);
    for (const int uses : {1, 2, 2}) {
      shared.mutable_grad().reset();
      buckets.expect_last();
      for (int i = 0; i < uses; ++i) (shared * (reducer.rank() + 1)).sum().backward();
      const bool changed = buckets.send_rest();
      buckets.finish(/*again=*/uses == 2 && changed);
      EXPECT_THAT(gradient_of(shared), ElementsAre(3 * uses, 3 * uses));
    }
    EXPECT_EQ(reducer.sums_begun, 4);  // once more in the second step, and no more in the third
  });
}

TEST(GradientBucketsTest, AProcessWithoutAMicroBatchSendsZeros) {
  run_together(3, [](ThreadReducer& reducer) {
    const Tensor used = numbers(1, 2), idle = numbers(3, 4);
    GradientBuckets buckets({used, idle}, reducer);
    for (int step = 0; step < 2; ++step) {
      used.mutable_grad().reset();
      idle.mutable_grad().reset();
      buckets.expect_last();
      if (reducer.rank() == 1) (used * 5).sum().backward();
      EXPECT_FALSE(buckets.send_rest());
      buckets.finish(/*again=*/false);
      EXPECT_THAT(gradient_of(used), ElementsAre(5, 5));
      EXPECT_FALSE(idle.grad().defined()) << "no process has a gradient of it";
    }
  });
}

TEST(GradientBucketsTest, EarlierMicroBatchesAreAddedInEachProcess) {
  run_together(2, [](ThreadReducer& reducer) {
    const Tensor one = numbers(1, 2);
    GradientBuckets buckets({one}, reducer);
    for (int step = 0; step < 2; ++step) {
      one.mutable_grad().reset();
      (one * 1).sum().backward();
      buckets.expect_last();
      (one * 2).sum().backward();
      buckets.send_rest();
      buckets.finish(/*again=*/false);
      EXPECT_THAT(gradient_of(one), ElementsAre(6, 6));
    }
  });
}

}  // namespace
}  // namespace headshare
