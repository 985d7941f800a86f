// This file adds the formula of mha to the tests.
#include "headshare/attention/testing.h"

namespace headshare {
namespace {

AttentionOptions narrowed_mha() {
  AttentionOptions options = small_layer("mha");
  options.head_width = 3;
  options.key_width = 8;
  return options;
}

const AddFormula kMha({.scheme = "mha",
                       .head = [](const NaiveLayer& layer, int64_t h, const Tensor& x,
                                  const Tensor& y) { return layer.grouped(layer.options().heads, h, x, y); },
                       .cases = {{"mha", small_layer("mha")}, {"mha_narrowed", narrowed_mha()}}});

}  // namespace
}  // namespace headshare
