// This file is compiled with OpenMP and linked against libtorch's own libgomp, so that both share one pool.
#include "headshare/ops/parallel.h"

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>
#include <omp.h>

#include <atomic>
#include <exception>

namespace headshare {
namespace {

std::atomic<bool> used{false};

}  // namespace

bool torch_threads_were_used() { return used.load(std::memory_order_relaxed); }

kernels::Parallel torch_threads() {
  const int threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  return {threads, [threads](int64_t count, const std::function<void(int64_t, int64_t)>& body) {
            std::exception_ptr failure;
            if (threads > 1) used.store(true, std::memory_order_relaxed);
      // Items differ in cost under a causal mask: whoever is free takes the next.
#pragma omp parallel num_threads(threads)
            {
#pragma omp for schedule(dynamic, 1)
              for (int64_t i = 0; i < count; ++i) {
                try {
                  body(i, omp_get_thread_num());
                } catch (...) {
#pragma omp critical(headshare_parallel_failure)
                  failure = std::current_exception();
                }
              }
              at::native::cpublas::brgemm_release();  // AMX tiles, where products used them
            }
            if (failure) std::rethrow_exception(failure);
          }};
}

void in_torch_threads(int64_t count, const std::function<void(int64_t first, int64_t last)>& work) {
  if (count > 1 && at::get_num_threads() > 1) used.store(true, std::memory_order_relaxed);
  at::parallel_for(0, count, /*grain_size=*/1, work);
}

}  // namespace headshare
