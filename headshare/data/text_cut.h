// Where a text can be cut so that both parts, tokenised by themselves, give the tokens of the whole.
#pragma once

#include <cstddef>
#include <string_view>

namespace headshare {

// The last position (0 < position < size) behind a single line end, or before a single space, with
// no white space on its other sides; line ends are preferred. 0 when there is none.
//
// Why this is safe: the pre-tokenizers in use (white space; the GPT-2 pattern and its successors)
// take a line end with what stands before it and a space with what follows; only in a run of white
// space does a token depend on both sides.
size_t last_safe_cut(std::string_view text);

}  // namespace headshare
