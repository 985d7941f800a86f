#include "headshare/ops/packed_weights.h"

#include <ATen/ATen.h>

#include "headshare/ops/product.h"

namespace headshare {
namespace {

thread_local PackedWeights* in_use = nullptr;

}  // namespace

const Tensor& PackedWeights::panels(const Tensor& weight) {
  Tensor& found = panels_[weight.const_data_ptr()];
  if (!found.defined()) found = pack_panels(weight.t(), float_products_in_use());
  return found;
}

UsePackedWeights::UsePackedWeights(PackedWeights* weights) : before_(in_use) { in_use = weights; }

UsePackedWeights::~UsePackedWeights() { in_use = before_; }

PackedWeights* packed_weights_in_use() { return in_use; }

}  // namespace headshare
