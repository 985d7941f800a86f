// This file adds the formulas of skv to the tests.
#include "headshare/attention/testing.h"

namespace headshare {
namespace {

NaiveHead skv_head(const NaiveLayer& layer, int64_t h, const Tensor& x, const Tensor& y) {
  if (layer.has("query_key.weight")) {
    return {layer.query(layer.own("query_key", h, x)), layer.key(layer.own("query_key", h, y)),
            layer.own("value", h, y)};
  }
  const Tensor shared = layer.own("key_value", h, y);
  return {layer.query(layer.own("query", h, x)), layer.key(shared), shared};
}

const AddFormula kSkv({.scheme = "skv",
                       .head = skv_head,
                       .cases = {{"skv", small_layer("skv")},
                                 {"skv_shared_qk", with_option(small_layer("skv"), "shared-qk", "true")}}});

}  // namespace
}  // namespace headshare
