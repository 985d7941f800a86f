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

// Returns the bytes of a unit such as "gib", "g" or "b"; 0 for an unknown one.
double bytes_of_unit(std::string_view unit) {
  if (unit.empty() || unit == "b") return 1;
  constexpr std::string_view kPrefixes = "kmgtp";
  const size_t power = kPrefixes.find(unit[0]);
  const std::string_view rest = unit.substr(1);
  if (power == std::string_view::npos || (!rest.empty() && rest != "b" && rest != "ib")) return 0;
  return std::pow(rest == "b" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
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
  const double factor = bytes_of_unit(unit);
  HS_CHECK(factor > 0, name, how);
  HS_CHECK(number * factor <= kMostBytes, name, " ", text,
           " is more memory than any machine has; give at most 1024PiB");
  return number * factor;
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
