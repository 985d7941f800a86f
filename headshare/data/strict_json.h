// JSON from files we did not write: what nlohmann::json lets pass and we do not.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headshare {

// Parses one whole JSON document. Beyond the grammar it refuses duplicate keys, NUL bytes, a byte
// order mark, invalid UTF-8 and more than `most_depth` nested objects and lists (a scalar has depth
// 0), which bounds the work of everything that walks the result. Throws Error led by `where`.
nlohmann::json parse_strict_json(std::string_view text, const std::string& where, int most_depth);

}  // namespace headshare
