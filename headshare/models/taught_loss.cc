#include "headshare/models/taught_loss.h"

#include <ATen/ATen.h>

namespace headshare {

SummedLoss taught_loss(const DistilledLoss& found, const Tensor& hidden, int64_t tokens, const Lesson& lesson,
                       const Learning& how) {
  const Tensor sum = how.hidden > 0 ? found.sum + hidden_difference(hidden, lesson.hidden) * how.hidden : found.sum;
  return {sum, tokens, found.plain};
}

}  // namespace headshare
