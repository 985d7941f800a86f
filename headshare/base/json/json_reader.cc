#include "headshare/base/json/json_reader.h"

#include <cmath>

#include "headshare/base/json/json_input.h"

namespace headshare {
namespace {

double as_number(const nlohmann::json& value, const std::string& what) {
  HS_CHECK(value.is_number(), what, " is not a number");
  const double number = value.get<double>();
  HS_CHECK(std::abs(number) <= kLargestNumber, what, " is ", number, ", which nothing can have measured");
  return number;
}

}  // namespace

JsonReader::JsonReader(const nlohmann::json& object, std::string where) : object_(object), where_(std::move(where)) {
  HS_CHECK(object_.is_object(), where_, " is not a JSON object");
}

bool JsonReader::has(const char* key) const {
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

std::string JsonReader::text(const char* key) const {
  const nlohmann::json& value = at(key);
  HS_CHECK(value.is_string(), name(key), " is not a text");
  return value.get<std::string>();
}

bool JsonReader::flag(const char* key) const {
  const nlohmann::json& value = at(key);
  HS_CHECK(value.is_boolean(), name(key), " is not true or false");
  return value.get<bool>();
}

const nlohmann::json& JsonReader::object(const char* key) const {
  const nlohmann::json& value = at(key);
  HS_CHECK(value.is_object(), name(key), " is not an object");
  return value;
}

int64_t JsonReader::integer(const char* key, int64_t least) const {
  const std::optional<int64_t> value = json_integer(at(key));
  HS_CHECK(value, name(key), " is not a whole number");
  HS_CHECK(*value >= least, name(key), " must be at least ", least, ", not ", *value);
  return *value;
}

double JsonReader::number(const char* key) const { return as_number(at(key), name(key)); }

double JsonReader::number_from(const char* key, double least) const {
  const double value = number(key);
  HS_CHECK(value >= least, name(key), " must be at least ", least, ", not ", value);
  return value;
}

std::optional<double> JsonReader::optional_number(const char* key) const {
  return has(key) ? std::optional<double>(number(key)) : std::nullopt;
}

std::vector<double> JsonReader::numbers(const char* key) const {
  const nlohmann::json& list = array(key);
  std::vector<double> values;
  values.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) values.push_back(as_number(list[i], element(key, i)));
  return values;
}

std::vector<std::string> JsonReader::texts(const char* key) const {
  return list(key, [](const nlohmann::json& value, const std::string& where) {
    HS_CHECK(value.is_string(), where, " is not a text");
    return value.get<std::string>();
  });
}

const nlohmann::json& JsonReader::at(const char* key) const {
  const auto found = object_.find(key);
  HS_CHECK(found != object_.end(), name(key), " is missing");
  return *found;
}

const nlohmann::json& JsonReader::array(const char* key) const {
  const nlohmann::json& value = at(key);
  HS_CHECK(value.is_array(), name(key), " is not an array");
  return value;
}

}  // namespace headshare
