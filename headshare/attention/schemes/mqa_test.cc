// This file adds the formula of mqa to the tests.
#include "headshare/attention/testing.h"

namespace headshare {
namespace {

const AddFormula kMqa({.scheme = "mqa",
                       .head = [](const NaiveLayer& layer, int64_t h, const Tensor& x, const Tensor& y) {
                         return layer.grouped(/*groups=*/1, h, x, y);
                       }});

}  // namespace
}  // namespace headshare
