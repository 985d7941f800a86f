// Whole numbers in JSON that nobody vouches for.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

namespace headshare {

// The whole number from 0 to 2^63 - 1 that `value` is; nothing for anything else. nlohmann's own conversion makes
// larger ones negative, and cuts off what stands behind a point.
inline std::optional<int64_t> json_count(const nlohmann::json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return std::nullopt;
  const auto number = value.get<int64_t>();
  return number < 0 ? std::nullopt : std::optional<int64_t>(number);
}

// The same of a member; nothing where it is missing, or `object` is no object.
inline std::optional<int64_t> json_count(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? std::nullopt : json_count(*found);
}

}  // namespace headshare
