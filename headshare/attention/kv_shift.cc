#include "headshare/attention/kv_shift.h"

#include <ATen/ATen.h>

#include <cmath>

namespace headshare {
namespace {

// Returns [B, 1, S, 1] for bool [B, S].
Tensor by_token(const Tensor& visible_keys) { return visible_keys.unsqueeze(1).unsqueeze(3); }

Tensor mixed(const Tensor& x, const Tensor& share, const Tensor& sum, const Tensor& visible_keys) {
  const Tensor shown = visible_keys.defined() ? x.masked_fill(by_token(visible_keys).logical_not(), 0) : x;
  const Tensor before = at::constant_pad_nd(shown, {0, 0, 1, 0}).slice(2, 0, x.size(2));
  const auto of_head = [&](const Tensor& numbers) { return numbers.to(x.scalar_type()).view({-1, 1, 1}); };
  return shown * of_head(share) + before * of_head(sum - share);
}

}  // namespace

KvShiftImpl::KvShiftImpl(int64_t key_heads, int64_t value_heads) {
  const Init share = {.mean = 0.5, .deviation = 1 / std::sqrt(12.0)}, sum = Init::constant(1);
  key_share_ = declare("key_share", {key_heads}, share, Decay::kNo);
  key_sum_ = declare("key_sum", {key_heads}, sum, Decay::kNo);
  value_share_ = declare("value_share", {value_heads}, share, Decay::kNo);
  value_sum_ = declare("value_sum", {value_heads}, sum, Decay::kNo);
}

Tensor KvShiftImpl::keys(const Tensor& x, const Tensor& visible_keys) const {
  return mixed(x, key_share_, key_sum_, visible_keys);
}

Tensor KvShiftImpl::values(const Tensor& x, const Tensor& visible_keys) const {
  return mixed(x, value_share_, value_sum_, visible_keys);
}

Tensor offset_keys(const Tensor& keys, int64_t still, const Tensor& visible_keys) {
  const int64_t S = keys.size(2);
  if (S == 0) return keys;
  const Tensor own = keys.slice(3, 0, still);
  Tensor before = at::cat({own.slice(2, 0, 1), own.slice(2, 0, S - 1)}, 2);
  if (visible_keys.defined()) {
    const Tensor first = at::ones({visible_keys.size(0), 1}, visible_keys.options());
    before = at::where(by_token(at::cat({first, visible_keys.slice(1, 0, S - 1)}, 1)), before, own);
  }
  return at::cat({before, keys.slice(3, still)}, 3);
}

}  // namespace headshare
