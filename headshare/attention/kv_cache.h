// A cache keeps what decoding needs of the tokens already seen, per attention sub-layer: exactly the tensors that a
// scheme's project_memory returns, nothing expanded.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace headshare {

using at::Tensor;

// This is the memory side of one attention sub-layer: tensors [B, heads, S, width] whose meaning is the scheme's own.
using Memory = std::vector<Tensor>;

class KvCache {
 public:
  // The cache can hold `capacity` tokens; it takes the room at the first append.
  explicit KvCache(int64_t capacity) : capacity_(capacity) {}

  // Appends memory of new tokens and returns views of all of it; no gradient goes through them.
  // Throws Error past the capacity.
  Memory append(const Memory& fresh);

  // Keeps the encoder side, for cross-attention, once and as it is.
  void store(Memory memory);

  // Makes sequence to[i] a copy of from[i]. No sequence is in both lists, none is written twice; the others stay as
  // they are.
  void copy(std::span<const int64_t> from, std::span<const int64_t> to);

  // Replaces each sequence by `times` equal ones, side by side.
  void repeat(int64_t times);

  // Keeps only the first `sequences` sequences.
  void shrink(int64_t sequences);

  int64_t length() const { return length_; }
  bool empty() const { return parts_.empty(); }
  Memory contents() const;

  // Counts the elements that the cache stores for each token of each sequence.
  int64_t elements_per_token() const;

  // Counts the bytes that the cache has taken from the allocator.
  int64_t allocated_bytes() const;

 private:
  int64_t capacity_;
  int64_t length_ = 0;
  Memory parts_;  // [B, heads, capacity, width]
};

}  // namespace headshare
