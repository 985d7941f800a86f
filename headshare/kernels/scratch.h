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

  // Returns how much a kernel takes that lays out its pieces with `lay_out(Scratch&)`.
  template <typename LayOut>
  static size_t size_of(const LayOut& lay_out) {
    Scratch measuring(nullptr);
    lay_out(measuring);
    return measuring.next_;
  }

 private:
  uintptr_t next_;
};

// Returns how many bytes a kernel's lay_out(Scratch&) takes; leaves `like` without memory.
template <typename Kernel>
size_t scratch_size(Kernel& like) {
  return Scratch::size_of([&](Scratch& scratch) { like.lay_out(scratch); });
}

// Holds a block for each thread.
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
