// This header says what texts may hold: the same rules for every reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headshare/data/text/text_source.h"

namespace headshare {

// Returns a document's bytes as the options allow them; `where` and `offset` say where they stand. `storage` holds the
// text when it had to be changed. Throws Error led by `where` for what the options refuse.
std::string_view allowed_text(std::string_view text, const TextSourceOptions& options, const std::string& where,
                              uint64_t offset, std::string* storage);

}  // namespace headshare
