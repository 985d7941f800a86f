#include "headshare/metrics/translation/western.h"

namespace headshare {
namespace {

bool is_digit(char c) { return '0' <= c && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }

// Tells whether mteval's class has `c`: the blank belongs to it.
bool is_sign(char c) {
  return ('{' <= c && c <= '~') || ('[' <= c && c <= '`') || (' ' <= c && c <= '&') || ('(' <= c && c <= '+') ||
         (':' <= c && c <= '@') || c == '/';
}

// Writes pairs of neighbours that `first` and `second` describe, none overlapping, with blanks: one between them, and
// one before or behind them.
template <class First, class Second>
std::string separate_pairs(std::string_view text, bool before, First first, Second second) {
  std::string out;
  out.reserve(text.size() + 16);
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !first(text[i]) || !second(text[i + 1])) {
      out += text[i];
      continue;
    }
    if (before) out += ' ';
    out += text[i];
    out += ' ';
    out += text[++i];
    if (!before) out += ' ';
  }
  return out;
}

}  // namespace

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  size_t begin = 0;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, begin)) {
    out += text.substr(begin, at - begin);
    out += to;
    begin = at + from.size();
  }
  out += text.substr(begin);
  return out;
}

std::string separate_signs(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  for (const char c : text) {
    const bool sign = is_sign(c);
    if (sign) out += ' ';
    out += c;
    if (sign) out += ' ';
  }
  return out;
}

std::string separate_points(std::string_view text) {
  const auto no_digit = [](char c) { return !is_digit(c); };
  const auto dash = [](char c) { return c == '-'; };
  const std::string behind = separate_pairs(text, false, no_digit, is_point);
  const std::string before = separate_pairs(behind, true, is_point, no_digit);
  return separate_pairs(before, false, is_digit, dash);
}

}  // namespace headshare
