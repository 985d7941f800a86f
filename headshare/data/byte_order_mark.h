// Some programs put the byte order mark, U+FEFF, before UTF-8, at the beginning of an input. It is no text, whoever
// reads the input (docs/design/018-scores-and-readers.md).
#pragma once

#include <string>

namespace headshare {

// Takes the mark off `text`, with which the input of this name begins; a notice says so, once for each name. Tells
// whether there was one.
bool drop_byte_order_mark(std::string* text, const std::string& input);

}  // namespace headshare
