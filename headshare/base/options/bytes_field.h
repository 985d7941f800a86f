// Reads amounts of memory as people write them.
#pragma once

#include <optional>
#include <string>

#include "headshare/base/options/field.h"

namespace headshare {

// Returns bytes for "8GiB", "8 GB", "512M", "1.5g", "1000000". KiB, MiB, ... and K, M, ... are powers of 1024, as
// memory is counted; KB, MB, ... are powers of 1000. Throws Error.
double parse_bytes(const std::string& name, const std::string& text);

// Makes a field for an amount of memory, written as parse_bytes reads it; "none" while unset.
Field bytes_field(std::string name, std::optional<double>* target, std::string help, FieldOptions options = {});

}  // namespace headshare
