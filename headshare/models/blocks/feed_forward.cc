#include "headshare/models/blocks/feed_forward.h"

#include <algorithm>

namespace headshare {
namespace {

Bias bias_of(const TransformerOptions& o) { return o.feed_forward_bias ? Bias::kYes : Bias::kNo; }

}  // namespace

FeedForward make_feed_forward(const TransformerOptions& o) {
  return is_gated(o.feed_forward) ? make_gated_feed_forward(o) : make_plain_feed_forward(o);
}

int64_t default_feed_forward_width(FeedForwardKind kind, int64_t d_model) {
  if (!is_gated(kind)) return 4 * d_model;
  return std::max<int64_t>(1, (d_model + 1) / 3) * 8;
}

// A plain sub-layer computes GELU again for the gradient, but not in bfloat16. A gated one keeps the gate, its
// activation, the values it multiplies and the product.
FeedForwardValues feed_forward_values(const TransformerOptions& o, bool bf16) {
  const auto F = static_cast<double>(*o.feed_forward_width);
  if (is_gated(o.feed_forward)) return {.kept = 4 * F, .passing = 4 * F};
  return {.kept = (bf16 ? 2 : 1) * F, .passing = 2 * F};
}

Linear feed_forward_expansion(const TransformerOptions& o) {
  return Linear(o.attention.d_model, *o.feed_forward_width, bias_of(o), Init::normal(o.init_deviation));
}

Linear feed_forward_contraction(const TransformerOptions& o) {
  return Linear(*o.feed_forward_width, o.attention.d_model, bias_of(o), Init::normal(o.attention.output_deviation));
}

}  // namespace headshare
