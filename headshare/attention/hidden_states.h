// This header holds what the schemes have in common that keep hidden states in place of keys.
#pragma once

#include <string>

#include "headshare/attention/options.h"

namespace headshare {

// This is SchemeRecord::why_not of these schemes: rotary positions need a projected key to turn.
std::string why_not_hidden_states(const AttentionOptions& resolved);

}  // namespace headshare
