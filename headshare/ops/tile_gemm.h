// The kernels run on this matrix product: oneDNN's brgemm where the CPU has it, else MKL's sgemm, both as they lie in
// libtorch.
#pragma once

#include <string>
#include <vector>

#include "headshare/kernels/gemm.h"

namespace headshare {

// Returns the product; its functions are null where the machine has no fast product of that type.
const kernels::TileGemm& tile_gemm();

// Returns "brgemm", "sgemm" or "none", for float and for bf16 tiles.
std::string tile_gemm_name(bool bf16);

struct FloatProduct {
  std::string name;
  decltype(kernels::TileGemm::f32) multiply;
};

// Returns all products that run here and are right, the best first.
const std::vector<FloatProduct>& float_products();

}  // namespace headshare
