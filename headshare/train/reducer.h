// This is the seam where several processes of one training run add up what each has computed.
//
// Losses and gradients are sums over targets, and dropout is keyed by micro-batch. So process r of n computes the
// micro-batches r, r + n, r + 2 n, ... of the draw that all of them make alike (step.h), and the sums over the
// processes are those of one process that accumulates, but for the order in which they are added.
#pragma once

#include <span>
#include <vector>

#include "headshare/ops/layer.h"

namespace headshare {

class Reducer {
 public:
  virtual ~Reducer() = default;

  // Returns the number of this process: 0, 1, ... size() - 1.
  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;

  // Replaces each element by its sum over the processes, with the same bits in all of them: the copies of the
  // parameters must stay equal. All processes call these in the same order, with tensors of the same shapes and as many
  // numbers. Throws Error where another process is gone.
  virtual void sum(const std::vector<Tensor>& tensors) = 0;
  virtual void sum(std::span<double> numbers) = 0;
};

// A run of one process has its sums already.
class OneProcess final : public Reducer {
 public:
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 1; }
  void sum(const std::vector<Tensor>& /*tensors*/) override {}
  void sum(std::span<double> /*numbers*/) override {}
};

inline Reducer& one_process() {
  static OneProcess alone;
  return alone;
}

}  // namespace headshare
