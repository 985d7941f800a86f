#include "headshare/attention/kv_cache.h"

#include <ATen/ATen.h>

#include <cstring>

#include "headshare/base/error.h"

namespace headshare {
namespace {

Tensor indices(std::span<const int64_t> numbers, const Tensor& like) {
  return at::tensor(at::IntArrayRef(numbers.data(), numbers.size()), at::kLong).to(like.device());
}

// Copies sequences `from` of a part [B, heads, length, width] to sequences `to`. The part lies in the memory of the
// CPU, and the rows (tokens) of each head lie side by side. This is several times as fast as index_select and
// index_copy, which walk over strides and write a copy in between.
void copy_in_memory(const Tensor& part, std::span<const int64_t> from, std::span<const int64_t> to) {
  const auto bytes = static_cast<size_t>(part.size(2) * part.size(3)) * part.element_size();
  auto* const data = static_cast<char*>(part.mutable_data_ptr());
  const auto place = [&](int64_t sequence, int64_t head) {
    return data + (sequence * part.stride(0) + head * part.stride(1)) * static_cast<int64_t>(part.element_size());
  };
  for (size_t i = 0; i < from.size(); ++i) {
    for (int64_t head = 0; head < part.size(1); ++head) std::memcpy(place(to[i], head), place(from[i], head), bytes);
  }
}

}  // namespace

Memory KvCache::append(const Memory& fresh) {
  const at::NoGradGuard no_grad;  // else every step of a generation would hang on to the one before
  const int64_t count = fresh.front().size(2);
  HS_CHECK(length_ + count <= capacity_, "the cache holds ", capacity_, " tokens and cannot take ", count,
           " more after ", length_, "; raise the context or generate less");
  if (parts_.empty()) {
    for (const Tensor& part : fresh) {
      parts_.push_back(at::empty({part.size(0), part.size(1), capacity_, part.size(3)}, part.options()));
    }
  }
  for (size_t i = 0; i < fresh.size(); ++i) parts_[i].slice(2, length_, length_ + count).copy_(fresh[i]);
  length_ += count;
  return contents();
}

void KvCache::store(Memory memory) {
  capacity_ = length_ = memory.front().size(2);
  parts_ = std::move(memory);
}

void KvCache::copy(std::span<const int64_t> from, std::span<const int64_t> to) {
  const at::NoGradGuard no_grad;
  for (const Tensor& part : parts_) {
    const Tensor used = part.slice(2, 0, length_);
    if (used.device().is_cpu() && used.stride(3) == 1 && used.stride(2) == used.size(3)) {
      copy_in_memory(used, from, to);
    } else {
      used.index_copy_(0, indices(to, used), used.index_select(0, indices(from, used)));
    }
  }
}

void KvCache::repeat(int64_t times) {
  const at::NoGradGuard no_grad;
  for (Tensor& part : parts_) {
    Tensor wide = at::empty({part.size(0) * times, part.size(1), part.size(2), part.size(3)}, part.options());
    wide.slice(2, 0, length_).copy_(part.slice(2, 0, length_).repeat_interleave(times, 0));
    part = std::move(wide);
  }
}

void KvCache::shrink(int64_t sequences) {
  for (Tensor& part : parts_) part = part.narrow(0, 0, sequences);
}

Memory KvCache::contents() const {
  Memory views;
  for (const Tensor& part : parts_) views.push_back(part.slice(2, 0, length_));
  return views;
}

int64_t KvCache::elements_per_token() const {
  int64_t total = 0;
  for (const Tensor& part : parts_) total += part.size(1) * part.size(3);
  return total;
}

int64_t KvCache::allocated_bytes() const {
  int64_t total = 0;
  for (const Tensor& part : parts_) total += static_cast<int64_t>(part.storage().nbytes());
  return total;
}

}  // namespace headshare
