// Multi-query attention (Shazeer, 2019): grouped-query attention with a single group.
//   q_h = x W_Q^h, k = y W_K, v = y W_V; cache: 2 D per token
#include "headshare/attention/gqa.h"
#include "headshare/attention/schemes.h"

namespace headshare {

std::shared_ptr<Scheme> make_mqa(const AttentionOptions& options) {
  return std::make_shared<Gqa>(options, /*groups=*/1);
}

}  // namespace headshare
