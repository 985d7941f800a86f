// Reads JSON written by others in which the order of keys says something.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "headshare/base/files/file.h"

namespace headshare {

// Reads a file as read_json_input() (json_input.h) does, which sorts the keys of objects, without sorting them.
nlohmann::ordered_json read_json_in_order(const fs::path& path, uint64_t most_bytes);

}  // namespace headshare
