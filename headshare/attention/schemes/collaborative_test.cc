// This file adds the formula of collaborative attention to the tests.
#include "headshare/attention/testing.h"

namespace headshare {
namespace {

NaiveHead collaborative_head(const NaiveLayer& layer, int64_t h, const Tensor& x, const Tensor& y) {
  return {layer.query(layer.affine("query", x)) * layer.parameter("mixing")[h], layer.key(layer.affine("key", y)),
          layer.own("value", h, y)};
}

const AddFormula kCollaborativeFormula({.scheme = "collaborative",
                                        .head = collaborative_head,
                                        .cases = {{"collaborative", small_layer("collaborative")},
                                                  {"collaborative_6",
                                                   with_option(small_layer("collaborative"), "key-width", "6")}}});

}  // namespace
}  // namespace headshare
