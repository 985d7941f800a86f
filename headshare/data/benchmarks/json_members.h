// This header reads a flat JSON object, {"name": value, ...}, with its members in the order of the file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace headshare {

// Throws Error naming the file for anything else, a list or an object as a value, and a name twice.
std::vector<std::pair<std::string, nlohmann::json>> read_json_members(const std::string& input);

}  // namespace headshare
