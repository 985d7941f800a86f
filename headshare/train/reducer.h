// This is the seam where several processes of one training run add up what each has computed.
//
// Losses and gradients are sums over targets, and dropout is keyed by micro-batch. So process r of n computes the
// micro-batches r, r + n, r + 2 n, ... of the draw that all of them make alike (step.h), and the sums over the
// processes are those of one process that accumulates, but for the order in which they are added.
#pragma once

#include <memory>
#include <span>

#include "headshare/base/error.h"
#include "headshare/ops/layer.h"

namespace headshare {

// Another process of the run has ended, or does not answer.
class ProcessLost : public Error {
 public:
  using Error::Error;
};

// All processes call these functions in the same order, with tensors of the same shapes and as many numbers. The
// results have the same bits in all of them: the copies of the parameters must stay equal. Throws ProcessLost where
// another process is gone.
class Reducer {
 public:
  virtual ~Reducer() = default;

  // Returns the number of this process: 0, 1, ... size() - 1.
  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;

  // A sum that is under way.
  class Pending {
   public:
    virtual ~Pending() = default;
    virtual void wait() = 0;
  };

  // Begins to replace each element by its sum over the processes. The tensor, which is contiguous, belongs to the sum
  // until wait() returns.
  virtual std::unique_ptr<Pending> start_sum(const Tensor& tensor) = 0;

  virtual void sum(std::span<double> numbers) = 0;

  // Replaces the elements of the tensor, which is contiguous, by those that process `from` has.
  virtual void broadcast(const Tensor& tensor, int64_t from) = 0;
};

// A run of one process has its sums already.
class OneProcess final : public Reducer {
 public:
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 1; }
  std::unique_ptr<Pending> start_sum(const Tensor& /*tensor*/) override { return std::make_unique<Done>(); }
  void sum(std::span<double> /*numbers*/) override {}
  void broadcast(const Tensor& /*tensor*/, int64_t /*from*/) override {}

 private:
  struct Done final : Pending {
    void wait() override {}
  };
};

inline Reducer& one_process() {
  static OneProcess alone;
  return alone;
}

}  // namespace headshare
