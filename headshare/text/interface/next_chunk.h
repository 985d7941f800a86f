// The text that a tokenizer is trained on, piece by piece.
#pragma once

#include <functional>
#include <string>

namespace headshare {

// Gives the next piece of text; false when there is none. Each piece is a text of its own: no word
// or character spans two pieces, so cut at line ends.
using NextChunk = std::function<bool(std::string* chunk)>;

}  // namespace headshare
