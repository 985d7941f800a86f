// GPT-2's alphabet writes every byte as one printable character, so that tokens of any bytes can be written in JSON.
// Radford et al. 2019; the rule is that of openai/gpt-2's encoder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headshare {

// Returns the code point that stands for a byte: the byte itself when it is printable Latin-1 (0x21..0x7E, 0xA1..0xAC,
// 0xAE..0xFF), else U+0100, U+0101, ... in byte order. So ' ' is U+0120 and '\n' U+010A.
int32_t byte_to_code_point(unsigned char byte);

// Returns bytes written in the alphabet, as UTF-8.
std::string to_alphabet(std::string_view bytes);

// Returns the bytes that `text` writes; nothing when it has a character outside the alphabet.
std::optional<std::string> from_alphabet(std::string_view text);

}  // namespace headshare
