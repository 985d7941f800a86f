// Writes JSON as text, for every file and line that others read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace headshare {

// Returns the document, with lines where `indent` is not negative, and no line end behind it. Names of files and texts
// of others need not be UTF-8, which nlohmann's own dump() refuses: their wrong bytes become U+FFFD.
// A file that must hold every byte, such as a tokenizer, is written by dump().
template <class Json>
std::string json_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace headshare
