// What decoding keeps of the tokens already seen, per attention sub-layer: exactly the tensors a
// scheme's project_memory returns, nothing expanded.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace headshare {

using at::Tensor;

// The memory side of one attention sub-layer: tensors [B, heads, S, width] whose meaning is the
// scheme's own.
using Memory = std::vector<Tensor>;

class KvCache {
 public:
  // `capacity`: tokens it can hold; the room is taken at the first append.
  explicit KvCache(int64_t capacity) : capacity_(capacity) {}

  // Appends memory of new tokens and returns views of all of it; no gradient goes through them.
  // Throws Error past the capacity.
  Memory append(const Memory& fresh);

  // For cross-attention: keeps the encoder side as it is, once.
  void store(Memory memory);

  // Sequence to[i] becomes what from[i] is. None is both, none is written twice; the others stay where they are.
  void copy(std::span<const int64_t> from, std::span<const int64_t> to);

  // Each sequence becomes `times` equal ones, side by side.
  void repeat(int64_t times);

  // Only the first `sequences` are left.
  void shrink(int64_t sequences);

  int64_t length() const { return length_; }
  bool empty() const { return parts_.empty(); }
  Memory contents() const;

  // Elements the cache stores for each token of each sequence.
  int64_t elements_per_token() const;

  // Bytes the cache has taken from the allocator.
  int64_t allocated_bytes() const;

 private:
  int64_t capacity_;
  int64_t length_ = 0;
  Memory parts_;  // [B, heads, capacity, width]
};

}  // namespace headshare
