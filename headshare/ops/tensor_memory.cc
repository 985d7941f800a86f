#include "headshare/ops/tensor_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>

namespace headshare {
namespace {

// Smaller tensors come from the heap, which serves them well.
constexpr size_t kLeastBytes = size_t{1} << 18;

constexpr size_t kHugePage = size_t{1} << 21;

// Rounds sizes up to steps of a thirty-second of a power of two, whole pages: tensors of about the same size share
// blocks. Pages that a tensor does not touch take no memory.
size_t rounded(size_t bytes) {
  const size_t step = std::max<size_t>(std::bit_floor(bytes) / 32, 4096);
  return (bytes + step - 1) / step * step;
}

}  // namespace

BlockPool::~BlockPool() {
  while (drop_oldest()) {
  }
}

bool BlockPool::drop_oldest() {
  const auto oldest = std::min_element(kept_.begin(), kept_.end(),
                                       [](const auto& a, const auto& b) { return a.second.since < b.second.since; });
  if (oldest == kept_.end()) return false;
  ::munmap(oldest->first, oldest->second.size);
  held_ -= oldest->second.size;
  kept_.erase(oldest);
  return true;
}

// Tells whether `size` more may be held.
bool BlockPool::fits(size_t size) const { return held_ + size <= std::max(most_in_use_, in_use_ + size); }

char* BlockPool::from_system(size_t size) {
  while (!fits(size) && drop_oldest()) {
  }
  do {
    void* block = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block != MAP_FAILED) {
      if (size >= kHugePage) ::madvise(block, size, MADV_HUGEPAGE);  // a wish: fewer misses where rows lie pages apart
      held_ += size;
      return static_cast<char*>(block);
    }
  } while (drop_oldest());
  return nullptr;
}

// Finds a kept block of this size, the one used last: it is the likeliest to be in a cache. Else, where no more may be
// held, it finds the smallest that is larger.
BlockPool::Blocks::iterator BlockPool::best_kept(size_t size) {
  const bool may_divide = !fits(size);
  auto best = kept_.end();
  for (auto one = kept_.begin(); one != kept_.end(); ++one) {
    const Block& block = one->second;
    if (block.size < size || (block.size > size && !may_divide)) continue;
    const bool better = best == kept_.end() || block.size < best->second.size ||
                        (block.size == best->second.size && block.since > best->second.since);
    if (better) best = one;
  }
  return best;
}

// Leaves `size` bytes in a kept block and keeps the rest as another.
void BlockPool::divide(Blocks::iterator kept, size_t size) {
  Block& block = kept->second;
  kept_.emplace(kept->first + size, Block{block.size - size, block.origin, block.since});
  block.size = size;
}

void* BlockPool::take(size_t bytes) {
  const size_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  char* block = nullptr;
  if (const auto kept = best_kept(size); kept != kept_.end()) {
    if (kept->second.size > size) divide(kept, size);
    block = kept->first;
    used_.emplace(block, kept->second);
    kept_.erase(kept);
  } else {
    block = from_system(size);
    if (block == nullptr) return nullptr;
    used_.emplace(block, Block{size, block});
  }
  in_use_ += size;
  most_in_use_ = std::max(most_in_use_, in_use_);
  return block;
}

bool BlockPool::give_back(void* given) {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(given);
  if (found == used_.end()) return false;
  Block block = found->second;
  used_.erase(found);
  in_use_ -= block.size;
  block.since = clock_++;
  const auto place = kept_.emplace(static_cast<char*>(given), block).first;
  const auto join = [this](Blocks::iterator left, Blocks::iterator right) {
    if (left->second.origin != right->second.origin || left->first + left->second.size != right->first) return;
    left->second.size += right->second.size;
    left->second.since = std::max(left->second.since, right->second.since);
    kept_.erase(right);
  };
  if (const auto next = std::next(place); next != kept_.end()) join(place, next);
  if (place != kept_.begin()) join(std::prev(place), place);
  return true;
}

void BlockPool::trim() {
  const std::lock_guard lock(mutex_);
  while (drop_oldest()) {
  }
  most_in_use_ = in_use_;
}

bool BlockPool::lent(void* block) const {
  const std::lock_guard lock(mutex_);
  return used_.contains(block);
}

size_t BlockPool::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

size_t BlockPool::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

namespace {

// The pool lives as long as the process: static tensors are freed after static objects.
BlockPool& tensor_pool() {
  static auto* pool = new BlockPool;
  return *pool;
}

void release(void* block) {
  if (block == nullptr) return;
  if (!tensor_pool().lent(block)) return c10::GetDefaultCPUAllocator()->raw_deleter()(block);
  c10::profiledCPUMemoryReporter().Delete(block);  // first: another thread may take the block at once
  tensor_pool().give_back(block);
}

// This allocator tells libtorch's memory profiler of what it does, as the default allocator does.
class PoolAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes < kLeastBytes) return c10::GetDefaultCPUAllocator()->allocate(bytes);
    void* block = tensor_pool().take(bytes);
    TORCH_CHECK(block != nullptr, "not enough memory for a tensor of ", bytes, " bytes");
    c10::profiledCPUMemoryReporter().New(block, bytes);
    return {block, block, &release, c10::Device(c10::kCPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

void keep_tensor_memory() {
  static PoolAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/1);
}

std::shared_ptr<void> working_memory(size_t bytes) {
  const auto block = std::make_shared<c10::DataPtr>(c10::GetCPUAllocator()->allocate(bytes));
  return {block, block->get()};
}

void release_tensor_memory() { tensor_pool().trim(); }

}  // namespace headshare
