// This is multi-query attention (Shazeer, 2019): grouped-query attention with a single group.
//   q_h = x W_Q^h, k = y W_K, v = y W_V; cache: 2 D per token
#include "headshare/attention/schemes.h"
#include "headshare/attention/schemes/gqa.h"

namespace headshare {

namespace {
namespace mqa {

std::shared_ptr<Scheme> make(const AttentionOptions& options) {
  return std::make_shared<Gqa>(options, HeadCounts{.query = options.heads, .key = 1, .value = 1});
}

}  // namespace mqa
}  // namespace

SchemeRecord mqa_scheme() {
  return {.name = "mqa",
          .sentence = "all heads share keys and values",
          .paper = "Shazeer, 2019",
          .make = mqa::make,
          .reads = {"kv-shift", "key-offset"}};
}

}  // namespace headshare
