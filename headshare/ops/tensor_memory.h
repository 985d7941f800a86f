// Keeps the memory of large tensors on the CPU for the next ones.
//
// A training step frees as much as it takes. Returned to the system, every page is cleared again for the next step;
// left in glibc's heap, tensors of many sizes leave gaps that fit nothing: with recomputed blocks a process grew to
// twice what it used. Here a freed block serves the next tensor of its size.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace headshare {

// A pool holds blocks of memory by size. All functions may be called from any thread.
class BlockPool {
 public:
  BlockPool() = default;
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // Returns at least `bytes` > 0 at the start of a page, not cleared; null when the system has no more.
  void* take(size_t bytes);

  // Returns false when `block` is not from here. The block is kept until one of its size is wanted. Before what is held
  // exceeds what was ever in use, a larger kept block is divided, and its parts become one again once all are back;
  // where none is large enough, those kept longest go back to the system.
  bool give_back(void* block);

  // Gives everything that is not in use back to the system.
  void trim();

  bool lent(void* block) const;  // whether it is in use and from here

  size_t held() const;    // bytes from the system, in use or kept
  size_t in_use() const;  // bytes of held() that are in use

 private:
  struct Block {
    size_t size;
    char* origin;      // the start of the mapping that it is a part of
    size_t since = 0;  // when it was given back
  };
  using Blocks = std::map<char*, Block>;

  char* from_system(size_t size);
  bool fits(size_t size) const;
  bool drop_oldest();
  Blocks::iterator best_kept(size_t size);
  void divide(Blocks::iterator kept, size_t size);

  mutable std::mutex mutex_;
  std::unordered_map<void*, Block> used_;
  Blocks kept_;  // by address
  size_t held_ = 0, in_use_ = 0, most_in_use_ = 0, clock_ = 0;
};

// From now on this process takes the memory of its larger tensors on the CPU from one pool.
void keep_tensor_memory();

// Returns at least `bytes` bytes at the start of a cache line, from libtorch's allocator, which measurements of memory
// listen to.
std::shared_ptr<void> working_memory(size_t bytes);

// Gives the system back what no tensor uses. It is for a process that is done with large tensors and goes on.
void release_tensor_memory();

}  // namespace headshare
