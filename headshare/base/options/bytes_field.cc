#include "headshare/base/options/bytes_field.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr double kMostBytes = 1024.0 * 1024 * 1024 * 1024 * 1024 * 1024;  // counts of what fits into them are exact

double within_reach(double bytes, const std::string& name, const std::string& text) {
  HS_CHECK(bytes <= kMostBytes, name, " ", text, " is more memory than any machine has; give at most 1024PiB");
  return bytes;
}

}  // namespace

double parse_bytes(const std::string& name, const std::string& text) {
  const std::string how = " must be an amount of memory such as 8GiB, 512MiB or 16GB, not '" + text + "'";
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  HS_CHECK(code == std::errc() && std::isfinite(number) && number > 0, name, how);
  std::string unit;
  for (const char* c = end; c != text.data() + text.size(); ++c) {
    if (*c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  }
  if (unit.empty() || unit == "b") return within_reach(number, name, text);
  constexpr std::string_view kPrefixes = "kmgtp";
  const size_t power = kPrefixes.find(unit[0]);
  const std::string_view rest = std::string_view(unit).substr(1);
  HS_CHECK(power != std::string_view::npos && (rest.empty() || rest == "b" || rest == "ib"), name, how);
  const double factor = std::pow(rest == "b" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
  return within_reach(number * factor, name, text);
}

Field bytes_field(std::string name, std::optional<double>* target, std::string help, FieldOptions options) {
  Field made;
  made.name = std::move(name);
  made.help = std::move(help);
  made.range = "such as 8GiB";
  made.aliases = std::move(options.aliases);
  made.parse = [target, name = made.name](const std::string& text) {
    if (text == "none") {
      target->reset();
    } else {
      *target = parse_bytes(name, text);
    }
  };
  made.value = [target] { return target->has_value() ? nlohmann::json(**target) : nlohmann::json("none"); };
  return made;
}

}  // namespace headshare
