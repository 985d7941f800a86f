// Gradients of several processes are added up in buckets, while the backward pass is still computing.
#pragma once

#include <memory>
#include <vector>

#include "headshare/train/reducer.h"

namespace headshare {

inline constexpr int64_t kBucketBytes = 25 << 20;

// The buckets hold the parameters from the last to the first, as the backward pass reaches them. A bucket is sent when
// the last backward pass of a step has finished the gradients of all its parameters, and those before it are sent: all
// processes send the same buckets in the same order. Beside its gradients a bucket has a number for each of its
// parameters: how many processes have a gradient of it.
//
// The step before teaches how often a backward pass adds to a parameter's gradient, because a layer that
// stands at several depths adds to it several times. A gradient that changes after it was sent has all buckets sent
// again: correct, and slow.
class GradientBuckets {
 public:
  // Parameters that do not need gradients may be among them. `reducer` must outlive the buckets.
  GradientBuckets(std::vector<Tensor> parameters, Reducer& reducer, int64_t most_bytes = kBucketBytes);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  // Expects the last backward pass of this process's step.
  void expect_last();

  // Sends the buckets that are not sent yet. A process without a micro-batch sends zeros. Returns whether a gradient
  // changed after it was sent.
  bool send_rest();

  // Waits for the sums, after sending all buckets once more where a process found a change (`again`). Then the gradient
  // of each parameter is its sum over the processes; it is undefined where no process has one.
  void finish(bool again);

 private:
  struct Bucket {
    std::vector<size_t> members;  // indices of parameters
    Tensor sums;                  // the gradients in one row, and behind them the number of each member
    std::vector<Tensor> views;    // of the gradients, in the shapes of their parameters
    int64_t awaited = 0;          // members whose gradients are not finished
    std::unique_ptr<Reducer::Pending> pending = nullptr;
  };
  class Hook;

  void add_bucket(std::vector<size_t> members);
  void arrived(size_t parameter);
  void send_ready();
  void send(Bucket& bucket);
  void take(Bucket& bucket);

  std::vector<Tensor> parameters_;
  Reducer& reducer_;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;
  std::vector<int64_t> expected_, additions_;  // to a parameter's gradient, in the last backward pass
  size_t unsent_ = 0;                          // the first bucket that is not sent
  bool expecting_ = false;
  bool changed_ = false;
};

}  // namespace headshare
