// Norms go over the last axis. They have one interface, and each kind has a file.
#pragma once

#include <memory>

#include "headshare/base/options/field.h"
#include "headshare/ops/layer.h"

namespace headshare {

enum class NormKind { kLayer, kRms };

const EnumNames<NormKind>& norm_kind_names();

class NormLayer : public Layer {
 public:
  virtual Tensor forward(const Tensor& x) const = 0;  // [.., width] -> [.., width]
};
using Norm = std::shared_ptr<NormLayer>;

// `eps` is added under the root.
Norm make_norm(NormKind kind, int64_t width, double eps);

// Computes y = (x - mean) / sqrt(variance + eps) * weight + bias (Ba et al., 2016). weight, bias: [width].
class LayerNorm : public NormLayer {
 public:
  LayerNorm(int64_t width, double eps);
  Tensor forward(const Tensor& x) const override;

  Tensor weight;
  Tensor bias;

 private:
  double eps_;
};

// Computes y = x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich, 2019), in float32 or wider: no mean is taken
// away, nothing is added. weight: [width].
class RmsNorm : public NormLayer {
 public:
  RmsNorm(int64_t width, double eps);
  Tensor forward(const Tensor& x) const override;

  Tensor weight;

 private:
  double eps_;
};

}  // namespace headshare
