#include "headshare/base/strings/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace headshare {

std::string format_bytes(double bytes) {
  constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  while (std::abs(bytes) >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string format_duration(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1000);
  if (seconds < 60) return fmt::format("{:.0f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  if (whole >= 2 * 86400) return format_count(static_cast<double>(whole / 86400)) + " days";
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string format_count(double count) {
  if (std::abs(count) >= 1e9) return fmt::format("{:.2f}G", count / 1e9);
  if (std::abs(count) >= 1e5) return fmt::format("{:.2f}M", count / 1e6);
  std::string digits = fmt::format("{:.0f}", count);
  for (int at = static_cast<int>(digits.size()) - 3; at > (count < 0 ? 1 : 0); at -= 3) digits.insert(at, ",");
  return digits;
}

std::string format_fixed(double value, int digits) { return fmt::format("{:.{}f}", value, digits); }

std::string format_rounded(double value, int digits) {
  const std::string text = format_fixed(value, digits);
  return text.find_first_not_of("-0.") == std::string::npos && text[0] == '-' ? text.substr(1) : text;
}

std::string format_signed(double value, int digits) {
  const std::string text = format_rounded(value, digits);
  return text.starts_with('-') ? text : "+" + text;
}

std::string percent_text(double share) {
  const double percent = 100 * share;
  if (percent > 0 && percent < 0.01) return "less than 0.01%";
  std::string digits = format_fixed(percent, percent >= 10 || percent == 0 ? 0 : percent >= 1 ? 1 : 2);
  if (digits.ends_with(".0")) digits.resize(digits.size() - 2);
  return digits + "%";
}

std::string percent_text(double share, int digits) { return format_fixed(100 * share, digits) + "%"; }

std::string list_text(const std::vector<std::string>& names, const std::string& last) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " " + last + " " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace headshare
