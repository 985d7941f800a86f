#include "headshare/text/bpe/byte_alphabet.h"

#include <array>

#include "headshare/text/unicode/utf8.h"

namespace headshare {
namespace {

constexpr int32_t kFirstStandIn = 0x100;
constexpr int32_t kCodePoints = kFirstStandIn + 68;  // 68 bytes are not printable

constexpr bool printable(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<int32_t, 256> of_byte{};
  std::array<int32_t, kCodePoints> to_byte{};  // -1: not in the alphabet

  constexpr Alphabet() {
    to_byte.fill(-1);
    int32_t stand_in = kFirstStandIn;
    for (int byte = 0; byte < 256; ++byte) {
      const int32_t code_point = printable(byte) ? byte : stand_in++;
      of_byte[static_cast<size_t>(byte)] = code_point;
      to_byte[static_cast<size_t>(code_point)] = byte;
    }
  }
};

constexpr Alphabet kAlphabet;

}  // namespace

int32_t byte_to_code_point(unsigned char byte) { return kAlphabet.of_byte[byte]; }

std::string to_alphabet(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) append_utf8(byte_to_code_point(static_cast<unsigned char>(c)), &text);
  return text;
}

std::optional<std::string> from_alphabet(std::string_view text) {
  std::string bytes;
  size_t position = 0;
  while (position < text.size()) {
    const int32_t code_point = next_code_point(text, &position);
    if (code_point < 0 || code_point >= kCodePoints) return std::nullopt;
    const int32_t byte = kAlphabet.to_byte[static_cast<size_t>(code_point)];
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace headshare
