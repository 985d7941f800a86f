#include "headshare/base/strings/base64.h"

#include <array>
#include <cstdint>

#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string from_base64(std::string_view text, const std::string& where) {
  std::array<int, 256> value;
  value.fill(-1);
  for (size_t i = 0; i < kDigits.size(); ++i) value[static_cast<unsigned char>(kDigits[i])] = static_cast<int>(i);
  HS_CHECK(text.size() % 4 == 0, where, ": ", text.size(), " characters are no Base64: it is damaged");
  size_t end = text.size();
  while (end > 0 && text.size() - end < 2 && text[end - 1] == '=') --end;
  std::string bytes;
  bytes.reserve(end / 4 * 3 + 2);
  uint32_t bits = 0;
  for (size_t i = 0; i < end; ++i) {
    const int digit = value[static_cast<unsigned char>(text[i])];
    HS_CHECK(digit >= 0, where, ": character ", i, " is no Base64: it is damaged");
    bits = (bits << 6) | static_cast<uint32_t>(digit);
    // The second to the fourth of 4 digits complete a byte each.
    if (i % 4 != 0) bytes += static_cast<char>((bits >> (2 * (3 - i % 4))) & 0xFF);
  }
  return bytes;
}

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = (bits << 8) | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? kDigits[(bits >> (6 * (3 - k))) & 63] : '=';
  }
  return text;
}

}  // namespace headshare
