// Decides in which number format the products of a training step are computed.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "headshare/base/cuda_driver.h"
#include "headshare/base/options/field.h"

namespace headshare {

// The kinds are these. kBf16: matrix products and attention take bfloat16 (autocast), but see widens_products();
// parameters, gradients, optimizer, residual stream, norms, softmax and loss stay float32. kBf16x3: everything is
// float32, and matrix products are sums of three bfloat16 ones (FloatProducts in product.h); attention is as in kFp32.
// kAuto: kBf16 where gains_from_bf16(), else kFp32.
enum class Precision { kFp32, kBf16, kBf16x3, kAuto };

Field precision_field(Precision* target);
std::string precision_name(Precision precision);

// They name what attention, and what products, are computed in.
const EnumNames<Precision>& attention_precision_names();
const EnumNames<Precision>& product_precision_names();

// Tells whether bfloat16 products are faster than float32 ones: on the CPU as gains_from_bf16() tells from
// /proc/cpuinfo, on CUDA as the card's compute capability says.
bool gains_from_bf16(c10::Device device);

// Tells the same from the text of /proc/cpuinfo: amx_bf16 or (Arm) bf16; avx512_bf16 too, but not on Intel's
// processors, whose instruction has half the rate of fp32's (`headshare bench products --precisions fp32,bf16`).
bool gains_from_bf16(const std::string& cpuinfo);

// Tells whether three bfloat16 products are faster than one of float32: on the CPU with AMX.
bool gains_from_bf16x3(c10::Device device);
bool gains_from_bf16x3(const std::string& cpuinfo);

// Tells whether products of bfloat16 tensors on `device` are computed in float32 because it has no faster ones; what is
// kept stays bfloat16.
bool widens_products(c10::Device device);

// Returns the type that products of x are computed in now: x's own unless this thread computes in bfloat16.
at::ScalarType product_type(const at::Tensor& x);

// Sets, for tests, what widens_products() says of the CPU from now on; with std::nullopt what the processor says.
void force_widened_products(std::optional<bool> widened);

// Returns what kAuto stands for; and kBf16x3 is kFp32, which is more exact, where three products gain nothing. Throws
// Error for kBf16 on a card that has no products of it.
Precision resolve_precision(Precision wanted, c10::Device device);

// Throws that Error.
void check_bf16(Precision wanted, const GraphicsCard& card);

// Gives notice when `wanted` gains no time over fp32 on `device`.
void warn_if_no_faster(Precision wanted, c10::Device device);

// While one of these lives, this thread computes products as `precision` (not kAuto) says. Weights are
// converted on every use: torch's cache would keep those of a recomputed block alive.
class ComputeIn {
 public:
  ComputeIn(Precision precision, c10::DeviceType device);
  ~ComputeIn();
  ComputeIn(const ComputeIn&) = delete;
  ComputeIn& operator=(const ComputeIn&) = delete;

  // Returns what this thread computes in now.
  static Precision current(c10::DeviceType device);

 private:
  c10::DeviceType device_;
  bool enabled_before_, cached_before_, in_three_before_;
  c10::ScalarType type_before_;
};

}  // namespace headshare
