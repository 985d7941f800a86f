// Base64 (RFC 4648, with padding) writes bytes as letters, where a file of text holds them.
#pragma once

#include <string>
#include <string_view>

namespace headshare {

// Throws Error led by `where` for what is no base64.
std::string from_base64(std::string_view text, const std::string& where);
std::string to_base64(std::string_view bytes);

}  // namespace headshare
