// Each option struct has one list: `fields(options)` names each option once, with its help, range and aliases. Flags,
// YAML, --help, checkpoints and result files are all readers of that list.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace headshare {

// This is one option: its name in kebab-case, and how to read and write it. It refers to the struct it was made from,
// which must outlive it.
struct Field {
  std::string name;
  std::string help;
  std::string range;                              // for --help: "1..1024", "adamw|sgd", "" when anything goes
  std::vector<std::string> aliases;               // names other tools use for the same thing, kebab-case
  bool is_switch = false;                         // a bool: the flag needs no value
  int64_t since = 1;                              // FieldOptions::since
  std::function<void(const std::string&)> parse;  // throws Error naming the field and the range
  std::function<nlohmann::json()> value;
};

using Fields = std::vector<Field>;

// Files repeat this number as it was spelled: results of "5e-5" do not become results of "5e-05".
struct SpelledNumber {
  double value = 0;
  std::string spelling;
};

std::vector<double> values_of(const std::vector<SpelledNumber>& numbers);

// This says what a field may hold, and its other names.
struct FieldOptions {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  std::vector<std::string> aliases = {};
  // This version of the file format brought the option (models/checkpoint.h). A file whose option is at its default is
  // written as if the option did not exist, so that older programs read it.
  int64_t since = 1;
};

Field field(std::string name, int64_t* target, std::string help, FieldOptions options = {});
Field field(std::string name, double* target, std::string help, FieldOptions options = {});
Field field(std::string name, bool* target, std::string help, FieldOptions options = {});
Field field(std::string name, std::string* target, std::string help, FieldOptions options = {});
// These lists are written as comma-separated text, or as a YAML or JSON list.
Field field(std::string name, std::vector<std::string>* target, std::string help, FieldOptions options = {});
Field field(std::string name, std::vector<int64_t>* target, std::string help, FieldOptions options = {});
Field field(std::string name, std::vector<SpelledNumber>* target, std::string help, FieldOptions options = {});
// These fields are written "auto" while unset.
Field field(std::string name, std::optional<int64_t>* target, std::string help, FieldOptions options = {});
Field field(std::string name, std::optional<double>* target, std::string help, FieldOptions options = {});

// The text is one of `choices`; '-' and '_' and the case of letters are the same.
Field field(std::string name, std::string* target, std::string help, const std::vector<std::string>& choices,
            FieldOptions options);

// These are the names of an enumeration's values, in the order of --help.
template <class E>
using EnumNames = std::vector<std::pair<E, std::string>>;

// Returns the name of a value; every value has one.
template <class E>
std::string enum_name(const EnumNames<E>& names, E value) {
  for (const auto& [one, name] : names) {
    if (one == value) return name;
  }
  return "";
}

Field enum_field(std::string name, std::string help, const std::vector<std::string>& choices,
                 std::function<void(size_t)> set, std::function<size_t()> get, FieldOptions options);

// Makes a field for an enumeration, written by the names in `names`.
template <class E>
Field field(std::string name, E* target, std::string help, const EnumNames<E>& names, FieldOptions options = {}) {
  std::vector<std::string> choices;
  for (const auto& [value, text] : names) choices.push_back(text);
  auto set = [target, names](size_t index) { *target = names[index].first; };
  auto get = [target, names] {
    size_t index = 0;
    while (index + 1 < names.size() && names[index].first != *target) ++index;
    return index;
  };
  return enum_field(std::move(name), std::move(help), choices, set, get, std::move(options));
}

// Returns the names of the fields, in their order.
std::vector<std::string> names_of(const Fields& fields);

// Appends the fields of a member struct.
void append(Fields* fields, Fields more);

// Finds a field by its name in any spelling: lower case, '_' read as '-', aliases resolved. Returns nullptr when the
// name is unknown.
Field* find_field(Fields& fields, const std::string& name);

// Sets one field by name; an unknown name is refused with the nearest known one. `where` tells
// where the setting stands ("config.yaml:3", "--flag") and leads the message.
void set_field(Fields& fields, const std::string& name, const std::string& text, const std::string& where);

// Returns all fields as one JSON object {name: value}.
nlohmann::json to_json(const Fields& fields);

// Sets fields from a JSON object; unknown keys are refused with the nearest name. Fields the object
// does not have keep their values.
void from_json(Fields& fields, const nlohmann::json& object, const std::string& where);

// Returns a JSON scalar or list as the text that `Field::parse` reads.
std::string field_text(const nlohmann::json& value, const std::string& where);

}  // namespace headshare
