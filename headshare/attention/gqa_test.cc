// This file adds the formula of gqa to the tests.
#include "headshare/attention/gqa.h"

#include "headshare/attention/testing.h"

namespace headshare {
namespace {

const AddFormula kGqa({.scheme = "gqa",
                       .head = [](const NaiveLayer& layer, int64_t h, const Tensor& x, const Tensor& y) {
                         return layer.grouped(*layer.options().own.get<GqaOptions>().groups, h, x, y);
                       }});

}  // namespace
}  // namespace headshare
