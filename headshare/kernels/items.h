// Runs work items on threads, each with working memory that its thread keeps from item to item.
#pragma once

#include "headshare/kernels/attention.h"
#include "headshare/kernels/scratch.h"

namespace headshare::kernels {

// Calls work(kernel, i) for every i < count, count >= 1, on a kernel made by make(i) that has laid out its
// memory; all kernels lay out the same.
template <typename Make, typename Work>
void for_each_item(const Machine& machine, int64_t count, const Make& make, const Work& work) {
  auto like = make(0);
  const ThreadScratch memory(machine.allocate, machine.parallel.threads, scratch_size(like));
  machine.parallel.run(count, [&](int64_t i, int64_t thread) {
    auto kernel = make(i);
    Scratch scratch = memory.of(thread);
    kernel.lay_out(scratch);
    work(kernel, i);
  });
}

}  // namespace headshare::kernels
