// The kernels of the operations share this glue. The schemas are in library.cc; the package in python/headshare gives
// them autograd, shapes and autocast, and explains their arguments.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <cstdint>
#include <optional>
#include <string>

#include "headshare/ops/gelu.h"

namespace headshare::torch_library {

// Lets add(library) register functions for each device that headshare computes on.
#define HS_OPERATIONS(add)                                       \
  TORCH_LIBRARY_IMPL(headshare, CPU, library) { add(library); }  \
  TORCH_LIBRARY_IMPL(headshare, CUDA, library) { add(library); } \
  static_assert(true)

// Returns the tensor, or an undefined one for none.
Tensor or_undefined(const std::optional<Tensor>& x);

// Returns a tensor without numbers, where a schema promises a tensor and there is none.
Tensor absent(const Tensor& like);
Tensor or_absent(const Tensor& x, const Tensor& like);

// Returns the key of a random stream from int64 numbers [n], n >= 1: the first is a key, and the others say which of
// the streams below it (stream_key() of base/rng.h).
uint64_t stream_of(const Tensor& numbers);

// Throws Error unless 0 <= p < 1.
void check_probability(double p);

// Throws Error unless x has floating-point numbers; `what` begins the sentence.
void check_floating(const char* what, const Tensor& x);

// Throws Error unless both are on one device.
void check_same_device(const char* what, const Tensor& x, const Tensor& other);

// Reads the words that torch.nn.functional.gelu takes: none, tanh.
GeluForm gelu_form(const std::string& approximate);

// Returns x in the layout of `like`, which has its shape.
Tensor laid_out_as(const Tensor& x, const Tensor& like);

}  // namespace headshare::torch_library
