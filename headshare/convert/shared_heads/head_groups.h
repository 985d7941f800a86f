// Heads are grouped so that those share which lose least by it.
#pragma once

#include <cstdint>
#include <vector>

#include "headshare/convert/collaborative/decomposition.h"

namespace headshare {

// [H, H], double: the share of both heads' energy that is lost when two heads share one key map of width d; scores and
// values weigh alike.
Tensor pair_losses(const HeadSlices& scores, const HeadSlices& values);

// The heads in the order in which each H / groups neighbours are a group: groups of equal size with small losses
// between their heads, found from neighbouring heads on by exchanging pairs until no exchange helps.
std::vector<int64_t> similar_heads(const Tensor& losses, int64_t groups);

}  // namespace headshare
