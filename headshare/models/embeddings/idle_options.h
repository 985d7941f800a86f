// Each kind of token embedding ignores some options, and setting an option that is ignored is an error.
#pragma once

#include <vector>

#include "headshare/models/embeddings/options.h"

namespace headshare {

// Throws Error for an option that is not at its default and that embeddings of none of these kinds read: a user who
// sets one believes that it matters.
void check_read_by(const std::vector<TokenEmbeddingKind>& kinds, TokenEmbeddingOptions options);

}  // namespace headshare
