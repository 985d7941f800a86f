#include "headshare/models/taught_loss.h"

#include <ATen/ATen.h>

namespace headshare {

SummedLoss taught_loss(const DistilledLoss& found, const Tensor& hidden, int64_t tokens, const TeacherOutput& taught,
                       const DistillationWeights& how) {
  if (how.hidden == 0) return {found.sum, tokens, found.plain};
  const double weight = how.hidden * static_cast<double>(tokens);
  return {found.sum + hidden_difference(hidden, taught.hidden) * weight, tokens, found.plain};
}

}  // namespace headshare
