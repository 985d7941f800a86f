#include "headshare/attention/kv_cache.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"

namespace headshare {

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

void KvCache::copy(const Tensor& from, const Tensor& to) {
  const at::NoGradGuard no_grad;
  for (const Tensor& part : parts_) {
    const Tensor used = part.slice(2, 0, length_);
    used.index_copy_(0, to, used.index_select(0, from));
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
