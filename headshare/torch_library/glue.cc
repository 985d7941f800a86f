#include "headshare/torch_library/glue.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/base/rng.h"

namespace headshare::torch_library {

Tensor or_undefined(const std::optional<Tensor>& x) { return x.value_or(Tensor()); }

Tensor absent(const Tensor& like) { return at::empty({0}, like.options()); }

Tensor or_absent(const Tensor& x, const Tensor& like) { return x.defined() ? x : absent(like); }

uint64_t stream_of(const Tensor& numbers) {
  HS_CHECK(numbers.scalar_type() == at::kLong && numbers.dim() == 1 && numbers.size(0) > 0,
           "the key of a dropout mask is one int64 number or several, [n], not ", numbers.sizes(), " of type ",
           numbers.scalar_type());
  const Tensor here = numbers.to(at::kCPU).contiguous();
  const auto* number = here.const_data_ptr<int64_t>();
  auto key = static_cast<uint64_t>(number[0]);
  for (int64_t i = 1; i < here.size(0); ++i) key = stream_key(key, static_cast<uint64_t>(number[i]));
  return key;
}

void check_probability(double p) {
  HS_CHECK(p >= 0 && p < 1, "a dropout probability is at least 0 and below 1, not ", p);
}

void check_floating(const char* what, const Tensor& x) {
  HS_CHECK(x.is_floating_point(), what, " takes floating-point tensors, not ", x.scalar_type(), " ", x.sizes());
}

void check_same_device(const char* what, const Tensor& x, const Tensor& other) {
  HS_CHECK(x.device() == other.device(), what, " takes tensors on one device, not on ", x.device(), " and ",
           other.device());
}

GeluForm gelu_form(const std::string& approximate) {
  HS_CHECK(approximate == "none" || approximate == "tanh", "gelu is approximated by none or tanh, not by ",
           approximate);
  return approximate == "tanh" ? GeluForm::kTanh : GeluForm::kErf;
}

Tensor laid_out_as(const Tensor& x, const Tensor& like) {
  return x.strides() == like.strides() ? x : at::empty_like(like, x.options()).copy_(x);
}

}  // namespace headshare::torch_library
