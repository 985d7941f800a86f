// This file adds the formulas of el_shared to the tests.
#include "headshare/attention/testing.h"

namespace headshare {
namespace {

// Tells whether the layer averages its heads; such a layer has no output projection.
bool averages_heads(const NaiveLayer& layer) { return !layer.has("output.weight"); }

NaiveHead el_shared_head(const NaiveLayer& layer, int64_t h, const Tensor& x, const Tensor& y) {
  const Tensor query = layer.query(layer.own("query", h, x));
  if (averages_heads(layer)) return {query, layer.key(layer.own("key", h, y)), y};
  const Tensor slice = NaiveLayer::part(y, h, layer.options().heads);
  return {query, layer.key(slice), slice};
}

Tensor el_shared_merge(const NaiveLayer& layer, const std::vector<Tensor>& heads) {
  return averages_heads(layer) ? at::stack(heads).mean(0) : layer.affine("output", at::cat(heads, 1));
}

// The model width is cut into heads.
AttentionOptions sliced_layer() {
  AttentionOptions options = small_layer("el_shared");
  options.d_model = options.heads * *options.head_width;
  return options;
}

const AddFormula kElShared({.scheme = "el_shared",
                            .head = el_shared_head,
                            .merge = el_shared_merge,
                            .cases = {{"el_shared", sliced_layer()},
                                      {"el_shared_averaged",
                                       with_option(small_layer("el_shared"), "averaged-values", "true")}}});

}  // namespace
}  // namespace headshare
