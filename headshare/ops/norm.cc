#include "headshare/ops/norm.h"

namespace headshare {

const EnumNames<NormKind>& norm_kind_names() {
  static const EnumNames<NormKind> names = {{NormKind::kLayer, "layer"}, {NormKind::kRms, "rms"}};
  return names;
}

Norm make_norm(NormKind kind, int64_t width, double eps) {
  if (kind == NormKind::kRms) return std::make_shared<RmsNorm>(width, eps);
  return std::make_shared<LayerNorm>(width, eps);
}

}  // namespace headshare
