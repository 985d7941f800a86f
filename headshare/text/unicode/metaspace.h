// Names the sign that SentencePiece writes for a space.
#pragma once

#include <string_view>

namespace headshare {

inline constexpr std::string_view kMetaspace = "\xE2\x96\x81";  // U+2581

}  // namespace headshare
