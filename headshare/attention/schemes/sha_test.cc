// This file adds the formula of sha to the tests.
#include "headshare/attention/testing.h"

namespace headshare {
namespace {

const AddFormula kSha({.scheme = "sha", .head = [](const NaiveLayer& layer, int64_t, const Tensor& x, const Tensor& y) {
                         return NaiveHead{layer.query(layer.affine("query", x)), layer.key(layer.affine("key", y)),
                                          layer.affine("value", y)};
                       }});

}  // namespace
}  // namespace headshare
