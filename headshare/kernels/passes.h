// Passes go over rows of values, written once with Highway and chosen at run time for the CPU: activations, the softmax
// of a large vocabulary, and RMS norms. They are serial; whoever calls them divides the rows among threads.
#pragma once

#include <cstdint>

namespace headshare::kernels {

enum class GeluForm {
  kTanh,  // x / (1 + exp(-2 sqrt(2 / pi) (x + 0.044715 x^3)))
  kErf,   // x (1 + erf(x / sqrt(2))) / 2
};

struct Passes {
  // Computes y[i] = gelu(x[i]); y may be x.
  void (*gelu)(const float* x, int64_t n, GeluForm form, float* y);
  // Computes dx[i] = dy[i] gelu'(x[i]); dx may be x or dy.
  void (*gelu_gradient)(const float* x, const float* dy, int64_t n, GeluForm form, float* dx);
  // Returns -log softmax(scores)[target]; with `slopes` (which may be the scores) these become softmax - one-hot
  // target, the gradient of that loss. NaN among the scores shows in both.
  double (*cross_entropy)(const float* scores, int64_t n, int64_t target, float* slopes);
  // Returns KL(softmax(teacher / T) || softmax(scores / T)) of rows of n scores, T the temperature. With `slopes`
  // (which may be the teacher's scores, not the others) these become softmax(scores / T) - softmax(teacher / T), T
  // times the gradient with respect to the scores. It is exactly 0, slopes too, for equal rows. NaN in either row shows
  // in both.
  double (*divergence)(const float* scores, const float* teacher, int64_t n, double temperature, float* slopes);
  // Computes y[i] = x[i] weight[i] / r with r = sqrt(mean(x^2) + eps); returns 1 / r. y may be x.
  float (*rms_norm)(const float* x, const float* weight, int64_t n, float eps, float* y);
  // This is the gradient of rms_norm, `inverse` what that returned: dx[i] = (dy[i] weight[i] - x[i] inverse^2 mean(dy
  // weight x)) inverse, and dy[i] x[i] inverse is added to dweight[i]. dx may be x or dy.
  void (*rms_norm_gradient)(const float* x, const float* weight, const float* dy, int64_t n, float inverse, float* dx,
                            float* dweight);
};

// Returns the passes for this CPU; force_tiles_target() of tiles.h holds here, too.
const Passes& passes();

}  // namespace headshare::kernels
