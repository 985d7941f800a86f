// Working memory of a kernel: one block per thread that grows and stays, since allocating megabytes
// anew for every item would spend its time on page faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace headshare::kernels {

class Scratch {
 public:
  // The calling thread's, emptied.
  static Scratch& mine() {
    thread_local Scratch scratch;
    scratch.used_ = 0;
    return scratch;
  }

  // Makes room for all that take() will be asked for: earlier pieces would move otherwise.
  void reserve(size_t bytes) {
    if (bytes <= size_) return;
    block_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded(bytes))));
    if (block_ == nullptr) throw std::bad_alloc();
    size_ = rounded(bytes);
  }

  // `count` values, uninitialised, at the start of a cache line.
  template <typename T>
  T* take(int64_t count) {
    auto* piece = reinterpret_cast<T*>(block_.get() + used_);
    used_ += bytes_for<T>(count);
    if (used_ > size_) throw std::bad_alloc();  // reserve() was asked for too little
    return piece;
  }

  template <typename T>
  static size_t bytes_for(int64_t count) {
    return rounded(static_cast<size_t>(count) * sizeof(T));
  }

 private:
  static constexpr size_t kAlignment = 64;
  static size_t rounded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> block_;
  size_t size_ = 0;
  size_t used_ = 0;
};

}  // namespace headshare::kernels
