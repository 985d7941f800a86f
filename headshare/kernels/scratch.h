// A kernel takes its working memory from here. The caller allocates it, so that who measures memory sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>

namespace headshare::kernels {

constexpr size_t kCacheLine = 64;

// Returns at least `bytes` bytes at the start of a cache line, freed with the pointer.
using Allocate = std::function<std::shared_ptr<void>(size_t bytes)>;

// Allocates from the C library.
inline std::shared_ptr<void> allocate_plain(size_t bytes) {
  void* block = std::aligned_alloc(kCacheLine, (bytes + kCacheLine - 1) / kCacheLine * kCacheLine);
  if (block == nullptr) throw std::bad_alloc();
  return {block, std::free};
}

// Hands out pieces of a block one after another, each at the start of a cache line.
class Scratch {
 public:
  explicit Scratch(void* block) : next_(reinterpret_cast<uintptr_t>(block)) {}

  // Returns `count` values, uninitialised.
  template <typename T>
  T* take(int64_t count) {
    auto* piece = reinterpret_cast<T*>(next_);
    next_ += (static_cast<size_t>(count) * sizeof(T) + kCacheLine - 1) / kCacheLine * kCacheLine;
    return piece;
  }

  // Returns how many bytes `take_pieces(Scratch&)` takes; the pieces that it gets are nowhere.
  template <typename Take>
  static size_t size_of(const Take& take_pieces) {
    Scratch measuring(nullptr);
    take_pieces(measuring);
    return measuring.next_;
  }

 private:
  uintptr_t next_;
};

// A block for each thread.
class ThreadScratch {
 public:
  ThreadScratch(const Allocate& allocate, int64_t threads, size_t bytes)
      : bytes_(bytes), block_(allocate(bytes * static_cast<size_t>(threads))) {}

  Scratch of(int64_t thread) const {
    return Scratch(static_cast<std::byte*>(block_.get()) + bytes_ * static_cast<size_t>(thread));
  }

 private:
  size_t bytes_;
  std::shared_ptr<void> block_;
};

}  // namespace headshare::kernels
