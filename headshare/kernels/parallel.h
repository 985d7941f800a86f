// The caller says how a kernel uses several threads, since libtorch has one pool and tests another.
#pragma once

#include <cstdint>
#include <functional>

namespace headshare::kernels {

struct Parallel {
  int64_t threads = 1;
  // Calls body(i, thread) for every i < count, in any order; thread < threads tells apart what runs at once.
  std::function<void(int64_t count, const std::function<void(int64_t i, int64_t thread)>& body)> run;
};

inline Parallel serial() {
  return {1, [](int64_t count, const std::function<void(int64_t, int64_t)>& body) {
            for (int64_t i = 0; i < count; ++i) body(i, 0);
          }};
}

}  // namespace headshare::kernels
