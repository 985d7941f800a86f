// Tests of kernels share these helpers.
#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "headshare/base/rng.h"
#include "headshare/kernels/parallel.h"
#include "headshare/kernels/scratch.h"

namespace headshare::kernels {

inline std::vector<float> random_floats(int64_t count, uint64_t seed, double deviation = 1) {
  Philox rng(seed);
  std::vector<float> x(static_cast<size_t>(count));
  for (float& one : x) one = static_cast<float>(rng.normal() * deviation);
  return x;
}

// These floats begin at a cache line, as the tiles of kernels do.
class AlignedFloats {
 public:
  AlignedFloats(int64_t count, float value) : AlignedFloats(std::vector<float>(static_cast<size_t>(count), value)) {}
  AlignedFloats(int64_t count, int seed, double deviation = 1)
      : AlignedFloats(random_floats(count, static_cast<uint64_t>(seed), deviation)) {}
  explicit AlignedFloats(const std::vector<float>& values) : size_(values.size()) {
    data_.reset(static_cast<float*>(std::aligned_alloc(64, (size_ * sizeof(float) + 63) / 64 * 64)));
    std::memcpy(data_.get(), values.data(), size_ * sizeof(float));
  }
  AlignedFloats(const AlignedFloats& other)
      : AlignedFloats(std::vector<float>(other.data(), other.data() + other.size_)) {}
  AlignedFloats& operator=(const AlignedFloats&) = delete;

  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  float& operator[](int64_t i) { return data_.get()[i]; }
  float operator[](int64_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  size_t size_;
  std::unique_ptr<float, Free> data_;
};

// Returns memory that is NaN wherever nobody has written.
inline std::shared_ptr<void> allocate_poisoned(size_t bytes) {
  std::shared_ptr<void> block = allocate_plain(bytes);
  std::memset(block.get(), 0xFF, bytes);
  return block;
}

// Returns plain threads: thread sanitizers do not understand OpenMP's.
inline Parallel std_threads(int64_t threads) {
  return {threads, [threads](int64_t count, const std::function<void(int64_t, int64_t)>& body) {
            std::vector<std::thread> pool;
            for (int64_t t = 0; t < threads; ++t) {
              pool.emplace_back([&, t] {
                for (int64_t i = t; i < count; i += threads) body(i, t);
              });
            }
            for (std::thread& one : pool) one.join();
          }};
}

// Returns threads of which whichever is free takes the next item, as OpenMP's dynamic schedule has it.
inline Parallel eager_threads(int64_t threads) {
  return {threads, [threads](int64_t count, const std::function<void(int64_t, int64_t)>& body) {
            std::atomic<int64_t> next = 0;
            std::vector<std::thread> pool;
            for (int64_t t = threads - 1; t >= 0; --t) {
              pool.emplace_back([&, t] {
                for (int64_t i = next++; i < count; i = next++) body(i, t);
              });
            }
            for (std::thread& one : pool) one.join();
          }};
}

}  // namespace headshare::kernels
