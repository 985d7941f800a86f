// This header cuts a text so that both parts, tokenised by themselves, give the tokens of the whole.
#pragma once

#include <cstddef>
#include <string_view>

namespace headshare {

// Returns the last position (0 < position < size) before a single space or, when there is none, behind a single line
// end, with no white space on their other sides. 0 when there is neither.
//
// Why this is safe: the pre-tokenizers in use (white space; the GPT-2 pattern and its successors)
// take a line end with what stands before it and a space with what follows; only in a run of white
// space does a token depend on both sides. Spaces come first because a tokenizer that puts a space
// before every text (add_prefix_space) then finds one there.
size_t last_safe_cut(std::string_view text);

}  // namespace headshare
