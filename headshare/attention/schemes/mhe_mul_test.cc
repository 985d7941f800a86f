// This file adds the formula of mhe_mul to the tests.
#include "headshare/attention/schemes/mhe_options.h"
#include "headshare/attention/testing.h"

namespace headshare {
namespace {

NaiveHead mhe_mul_head(const NaiveLayer& layer, int64_t h, const Tensor& x, const Tensor& y) {
  const double offset = layer.options().own.get<MheMulOptions>().offset;
  return {layer.query(layer.affine("query", x)) * (layer.parameter("query_embedding")[h] + offset),
          layer.key(layer.affine("key", y)) * (layer.parameter("key_embedding")[h] + offset),
          layer.affine("value", y) * (layer.parameter("value_embedding")[h] + offset)};
}

const AddFormula kMheMul({.scheme = "mhe_mul",
                          .head = mhe_mul_head,
                          .cases = {{"mhe_mul", small_layer("mhe_mul")},
                                    {"mhe_mul_offset_0", with_option(small_layer("mhe_mul"), "mhe-mul-offset", "0")}}});

}  // namespace
}  // namespace headshare
