// This file adds the formula of mhe_add to the tests.
#include "headshare/attention/testing.h"

namespace headshare {
namespace {

NaiveHead mhe_add_head(const NaiveLayer& layer, int64_t h, const Tensor& x, const Tensor& y) {
  return {layer.query(layer.affine("query", x)) + layer.parameter("query_embedding")[h],
          layer.key(layer.affine("key", y)) + layer.parameter("key_embedding")[h],
          layer.affine("value", y) + layer.parameter("value_embedding")[h]};
}

const AddFormula kMheAdd({.scheme = "mhe_add", .head = mhe_add_head, .inert = {"key_embedding"}});

}  // namespace
}  // namespace headshare
