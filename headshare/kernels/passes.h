// Passes over rows of values, written once with Highway and chosen at run time for the CPU: activations, and the
// softmax of a large vocabulary. Serial; whoever calls them divides the rows among threads.
#pragma once

#include <cstdint>

namespace headshare::kernels {

enum class GeluForm {
  kTanh,  // x / (1 + exp(-2 sqrt(2 / pi) (x + 0.044715 x^3)))
  kErf,   // x (1 + erf(x / sqrt(2))) / 2
};

struct Passes {
  // y[i] = gelu(x[i]); y may be x.
  void (*gelu)(const float* x, int64_t n, GeluForm form, float* y);
  // dx[i] = dy[i] gelu'(x[i]); dx may be x or dy.
  void (*gelu_gradient)(const float* x, const float* dy, int64_t n, GeluForm form, float* dx);
  // Returns -log softmax(scores)[target]; with `slopes` (which may be the scores) these become softmax - one-hot
  // target, the gradient of that loss. NaN among the scores shows in both.
  double (*cross_entropy)(const float* scores, int64_t n, int64_t target, float* slopes);
};

// For this CPU; force_tiles_target() of tiles.h holds here, too.
const Passes& passes();

}  // namespace headshare::kernels
