// This file adds the formula of el_lossless, which is that of mha, to the tests.
#include "headshare/attention/testing.h"

namespace headshare {
namespace {

AttentionOptions narrowed_el() {
  AttentionOptions options = small_layer("el_lossless");
  options.head_width = 3;
  options.key_width = 8;
  return options;
}

const AddFormula kElLossless({.scheme = "el_lossless",
                              .head = [](const NaiveLayer& layer, int64_t h, const Tensor& x,
                                         const Tensor& y) { return layer.grouped(layer.options().heads, h, x, y); },
                              .cases = {{"el_lossless", small_layer("el_lossless")},
                                        {"el_lossless_narrowed", narrowed_el()}}});

}  // namespace
}  // namespace headshare
