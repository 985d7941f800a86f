// Reads and writes numbers in text.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace headshare {

// Returns the number that all of `text` is, in decimal, without blanks or a "+" before it; nothing where it is none or
// does not fit. Infinities and nan are numbers of a floating type.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc() || stop != end) return std::nullopt;
  return number;
}

// Returns the shortest text that reads back as the same number.
inline std::string exact_text(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

}  // namespace headshare
