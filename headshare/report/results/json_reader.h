// Strict reading of JSON that somebody else may have written: every access names the file and the key.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "headshare/base/error.h"

namespace headshare {

// No measurement is larger, and sums of squares of numbers up to here stay finite.
inline constexpr double kLargestNumber = 1e30;

class JsonReader {
 public:
  // `where` leads every message: "run/results.json: cells[3]".
  JsonReader(const nlohmann::json& object, std::string where) : object_(object), where_(std::move(where)) {
    HS_CHECK(object_.is_object(), where_, " is not a JSON object");
  }

  bool has(const char* key) const {
    const auto found = object_.find(key);
    return found != object_.end() && !found->is_null();
  }

  std::string text(const char* key) const {
    const nlohmann::json& value = at(key);
    HS_CHECK(value.is_string(), name(key), " is not a text");
    return value.get<std::string>();
  }

  bool flag(const char* key) const {
    const nlohmann::json& value = at(key);
    HS_CHECK(value.is_boolean(), name(key), " is not true or false");
    return value.get<bool>();
  }

  double number(const char* key) const { return as_number(at(key), name(key)); }

  double number_from(const char* key, double least) const {
    const double value = number(key);
    HS_CHECK(value >= least, name(key), " must be at least ", least, ", not ", value);
    return value;
  }

  // Missing, or null: nothing.
  std::optional<double> optional_number(const char* key) const {
    return has(key) ? std::optional<double>(number(key)) : std::nullopt;
  }

  int64_t integer(const char* key, int64_t least = INT64_MIN) const {
    const nlohmann::json& value = at(key);
    const bool fits = value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
    HS_CHECK(fits, name(key), " is not a whole number");
    HS_CHECK(value.get<int64_t>() >= least, name(key), " must be at least ", least, ", not ", value.get<int64_t>());
    return value.get<int64_t>();
  }

  const nlohmann::json& object(const char* key) const {
    const nlohmann::json& value = at(key);
    HS_CHECK(value.is_object(), name(key), " is not an object");
    return value;
  }

  std::vector<double> numbers(const char* key) const {
    const nlohmann::json& list = array(key);
    std::vector<double> values;
    values.reserve(list.size());
    for (size_t i = 0; i < list.size(); ++i) values.push_back(as_number(list[i], element(key, i)));
    return values;
  }

  // read(element, where) for each element of an array.
  template <class Read>
  auto list(const char* key, const Read& read) const {
    const nlohmann::json& values = array(key);
    std::vector<decltype(read(values, std::string()))> made;
    made.reserve(values.size());
    for (size_t i = 0; i < values.size(); ++i) made.push_back(read(values[i], element(key, i)));
    return made;
  }

  // "run/results.json: \"steps\"": how a message about one key begins.
  std::string name(const char* key) const { return join_text(where_, ": \"", key, "\""); }

 private:
  const nlohmann::json& at(const char* key) const {
    const auto found = object_.find(key);
    HS_CHECK(found != object_.end(), name(key), " is missing");
    return *found;
  }

  const nlohmann::json& array(const char* key) const {
    const nlohmann::json& value = at(key);
    HS_CHECK(value.is_array(), name(key), " is not an array");
    return value;
  }

  std::string element(const char* key, size_t at) const { return join_text(where_, ": ", key, "[", at, "]"); }

  static double as_number(const nlohmann::json& value, const std::string& what) {
    HS_CHECK(value.is_number(), what, " is not a number");
    const double number = value.get<double>();
    HS_CHECK(std::abs(number) <= kLargestNumber, what, " is ", number, ", which nothing can have measured");
    return number;
  }

  const nlohmann::json& object_;
  std::string where_;
};

}  // namespace headshare
