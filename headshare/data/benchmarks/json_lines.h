// This header reads JSONL: one JSON object a line.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "headshare/data/line_reader.h"

namespace headshare {

// Parses the object of one line. Throws Error led by `where` for anything else.
nlohmann::json parse_json_line(std::string_view line, const std::string& where);

// Returns the next object, over blank lines; null at the end of the file. `lines` then stands at its line.
nlohmann::json next_json_line(LineReader* lines);

// Hands every object of the file to `use`, with "file:line" for messages. Throws Error when the file
// has none.
using UseRecord = std::function<void(const nlohmann::json& record, const std::string& where)>;
void for_each_json_line(const std::string& input, const UseRecord& use);

}  // namespace headshare
