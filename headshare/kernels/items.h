// Runs work items on threads, each with working memory that its thread keeps from item to item.
#pragma once

#include "headshare/kernels/attention.h"
#include "headshare/kernels/scratch.h"

namespace headshare::kernels {

// Calls work(kernel, i) for every i < count, count >= 1, on a kernel made by make(i, scratch), which takes its working
// memory from there. All kernels take the same, and nothing touches it before work().
template <typename Make, typename Work>
void for_each_item(const Machine& machine, int64_t count, const Make& make, const Work& work) {
  const size_t bytes = Scratch::size_of([&](Scratch& measuring) { make(0, measuring); });
  const ThreadScratch memory(machine.allocate, machine.parallel.threads, bytes);
  machine.parallel.run(count, [&](int64_t i, int64_t thread) {
    Scratch scratch = memory.of(thread);
    auto kernel = make(i, scratch);
    work(kernel, i);
  });
}

}  // namespace headshare::kernels
