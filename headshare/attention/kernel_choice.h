// This header tells which kernel attention runs on, and what keeps the faster ones from it. Asking attends to nothing.
#pragma once

#include "headshare/attention/options.h"
#include "headshare/ops/head_attention/head_attention.h"

namespace headshare {

struct AttentionSituation {
  int64_t batch = 1;
  int64_t queries = 1;  // T, the last of the keys
  int64_t keys = 1;     // S
  bool causal = false;
  bool padding = false;   // some keys are hidden
  bool training = false;  // gradients are wanted, and attention dropout counts
  Precision precision = Precision::kFp32;
};

// Returns the choice for a layer of these options, as a model would ask for it. The layer projects zeros, so the
// problem needs its memory.
BackendChoice kernel_choice(const AttentionOptions& options, const AttentionSituation& situation, c10::Device device);

}  // namespace headshare
