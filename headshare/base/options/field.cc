#include "headshare/base/options/field.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/canonical_name.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/number.h"
#include "headshare/base/strings/visible.h"

namespace headshare {
namespace {

std::string bound_text(double bound) {
  std::ostringstream out;
  if (bound == std::floor(bound) && std::abs(bound) < 1e15) {
    out << static_cast<int64_t>(bound);
  } else {
    out << bound;
  }
  return out.str();
}

std::string range_text(const FieldOptions& options) {
  const bool low = std::isfinite(options.min);
  const bool high = std::isfinite(options.max);
  if (low && high) return bound_text(options.min) + ".." + bound_text(options.max);
  if (low) return "at least " + bound_text(options.min);
  if (high) return "at most " + bound_text(options.max);
  return "";
}

// Tells whether `text` is a number that the type cannot hold.
template <class Number>
bool is_out_of_range(std::string_view text) {
  Number number{};
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc::result_out_of_range && stop == text.data() + text.size();
}

// Says what a number must be instead of one that the type cannot hold.
template <class Number>
std::string holdable_text(const FieldOptions& options) {
  if (!std::is_integral_v<Number>) return "a number that double precision can hold";
  const std::string range = range_text(options);
  if (std::isfinite(options.max)) return range;
  return join_text(range.empty() ? "" : range + " and ", "at most ", std::numeric_limits<int64_t>::max());
}

template <class Number>
Number parse_number(const std::string& name, const std::string& text, const FieldOptions& options) {
  const std::string_view digits = std::string_view(text).substr(text.starts_with('+') ? 1 : 0);
  const std::optional<Number> value = number_in<Number>(digits);
  const bool whole = std::is_integral_v<Number>;
  HS_CHECK(!is_out_of_range<Number>(digits), name, " must be ", holdable_text<Number>(options), ", not ",
           shortened(text, 60));
  HS_CHECK(value, name, " must be ", whole ? "a whole number" : "a number", ", not ", brief_text(text));
  const auto number = static_cast<double>(*value);
  HS_CHECK(std::isfinite(number), name, " must be finite, not ", brief_text(text));
  HS_CHECK(number >= options.min && number <= options.max, name, " must be ", range_text(options), ", not ",
           shortened(text, 60));
  return *value;
}

Field make_field(std::string name, std::string help, const FieldOptions& options) {
  Field made;
  made.name = std::move(name);
  made.help = std::move(help);
  made.range = range_text(options);
  made.aliases = options.aliases;
  made.since = options.since;
  return made;
}

template <class Number>
Field number_field(std::string name, Number* target, std::string help, const FieldOptions& options) {
  Field made = make_field(std::move(name), std::move(help), options);
  made.parse = [target, options, name = made.name](const std::string& text) {
    *target = parse_number<Number>(name, text, options);
  };
  made.value = [target] { return nlohmann::json(*target); };
  return made;
}

template <class Number>
Field optional_field(std::string name, std::optional<Number>* target, std::string help, const FieldOptions& options) {
  Field made = make_field(std::move(name), std::move(help), options);
  made.range = made.range.empty() ? "auto or a number" : "auto, " + made.range;
  made.parse = [target, options, name = made.name](const std::string& text) {
    if (text == "auto") {
      target->reset();
    } else {
      *target = parse_number<Number>(name, text, options);
    }
  };
  made.value = [target] { return target->has_value() ? nlohmann::json(**target) : nlohmann::json("auto"); };
  return made;
}

// Splits a list at its commas. "\," stands for a comma within an item, "\\" for a backslash.
std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (text[i] == '\\' && (next == ',' || next == '\\')) {
      parts.back() += next;
      ++i;
    } else if (text[i] == ',') {
      parts.emplace_back();
    } else {
      parts.back() += text[i];
    }
  }
  std::erase(parts, "");
  return parts;
}

// Returns one item as split_commas reads it.
std::string escape_commas(const std::string& item) {
  std::string escaped;
  for (const char c : item) {
    if (c == ',' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// `read` makes an item of the list from its text, `show` the JSON of one.
template <class Item>
Field number_list_field(std::string name, std::vector<Item>* target, std::string help, const FieldOptions& options,
                        const std::function<Item(const std::string& name, const std::string& text)>& read,
                        const std::function<nlohmann::json(const Item&)>& show) {
  Field made = make_field(std::move(name), std::move(help), options);
  made.range = made.range.empty() ? "comma-separated numbers" : "comma-separated numbers, " + made.range;
  made.parse = [target, read, name = made.name](const std::string& text) {
    std::vector<Item> items;
    for (const std::string& item : split_commas(text)) items.push_back(read(name, item));
    *target = std::move(items);
  };
  made.value = [target, show] {
    nlohmann::json list = nlohmann::json::array();
    for (const Item& item : *target) list.push_back(show(item));
    return list;
  };
  return made;
}

}  // namespace

Field field(std::string name, int64_t* target, std::string help, FieldOptions options) {
  return number_field(std::move(name), target, std::move(help), options);
}

Field field(std::string name, double* target, std::string help, FieldOptions options) {
  return number_field(std::move(name), target, std::move(help), options);
}

Field field(std::string name, std::optional<int64_t>* target, std::string help, FieldOptions options) {
  return optional_field(std::move(name), target, std::move(help), options);
}

Field field(std::string name, std::optional<double>* target, std::string help, FieldOptions options) {
  return optional_field(std::move(name), target, std::move(help), options);
}

Field field(std::string name, bool* target, std::string help, FieldOptions options) {
  Field made = make_field(std::move(name), std::move(help), options);
  made.range = "true|false";
  made.is_switch = true;
  made.parse = [target, name = made.name](const std::string& text) {
    const bool yes = text == "true" || text == "yes" || text == "on" || text == "1";
    const bool no = text == "false" || text == "no" || text == "off" || text == "0";
    HS_CHECK(yes || no, name, " must be true or false, not ", brief_text(text));
    *target = yes;
  };
  made.value = [target] { return nlohmann::json(*target); };
  return made;
}

Field field(std::string name, std::string* target, std::string help, FieldOptions options) {
  Field made = make_field(std::move(name), std::move(help), options);
  made.parse = [target](const std::string& text) { *target = text; };
  made.value = [target] { return nlohmann::json(*target); };
  return made;
}

Field field(std::string name, std::vector<std::string>* target, std::string help, FieldOptions options) {
  Field made = make_field(std::move(name), std::move(help), options);
  made.range = "comma-separated list";
  made.parse = [target](const std::string& text) { *target = split_commas(text); };
  made.value = [target] { return nlohmann::json(*target); };
  return made;
}

Field field(std::string name, std::vector<int64_t>* target, std::string help, FieldOptions options) {
  const auto read = [options](const std::string& of, const std::string& text) {
    return parse_number<int64_t>(of, text, options);
  };
  const auto show = [](int64_t number) { return nlohmann::json(number); };
  return number_list_field<int64_t>(std::move(name), target, std::move(help), options, read, show);
}

Field field(std::string name, std::vector<SpelledNumber>* target, std::string help, FieldOptions options) {
  const auto read = [options](const std::string& of, const std::string& text) {
    return SpelledNumber{.value = parse_number<double>(of, text, options), .spelling = text};
  };
  const auto show = [](const SpelledNumber& number) { return nlohmann::json(number.spelling); };
  return number_list_field<SpelledNumber>(std::move(name), target, std::move(help), options, read, show);
}

std::vector<double> values_of(const std::vector<SpelledNumber>& numbers) {
  std::vector<double> values;
  for (const SpelledNumber& one : numbers) values.push_back(one.value);
  return values;
}

Field enum_field(std::string name, std::string help, const std::vector<std::string>& choices,
                 std::function<void(size_t)> set, std::function<size_t()> get, FieldOptions options) {
  Field made = make_field(std::move(name), std::move(help), options);
  made.range.clear();
  for (const std::string& choice : choices) made.range += (made.range.empty() ? "" : "|") + choice;
  made.parse = [choices, set, name = made.name, range = made.range](const std::string& text) {
    const std::string wanted = canonical_name(text);
    const auto found = std::find_if(choices.begin(), choices.end(),
                                    [&](const std::string& choice) { return canonical_name(choice) == wanted; });
    HS_CHECK(found != choices.end(), name, " must be one of ", range, ", not ", brief_text(text),
             did_you_mean(text, choices));
    set(static_cast<size_t>(found - choices.begin()));
  };
  made.value = [choices, get] { return nlohmann::json(choices[get()]); };
  return made;
}

Field field(std::string name, std::string* target, std::string help, const std::vector<std::string>& choices,
            FieldOptions options) {
  const auto set = [target, choices](size_t index) { *target = choices[index]; };
  const auto get = [target, choices] {
    return static_cast<size_t>(std::find(choices.begin(), choices.end(), *target) - choices.begin());
  };
  Field made = enum_field(std::move(name), std::move(help), choices, set, get, std::move(options));
  made.value = [target] { return nlohmann::json(*target); };
  return made;
}

std::vector<std::string> names_of(const Fields& fields) {
  std::vector<std::string> names;
  for (const Field& one : fields) names.push_back(one.name);
  return names;
}

void append(Fields* fields, Fields more) {
  for (Field& one : more) fields->push_back(std::move(one));
}

Field* find_field(Fields& fields, const std::string& name) {
  const std::string wanted = canonical_name(name);
  for (Field& one : fields) {
    const bool alias = std::find(one.aliases.begin(), one.aliases.end(), wanted) != one.aliases.end();
    if (one.name == wanted || alias) return &one;
  }
  return nullptr;
}

void set_field(Fields& fields, const std::string& name, const std::string& text, const std::string& where) {
  Field* found = find_field(fields, name);
  if (found == nullptr) {
    std::vector<std::string> known;
    for (const Field& one : fields) known.push_back(one.name);
    throw Error(join_text(where, ": unknown option ", brief_text(name), did_you_mean(canonical_name(name), known)));
  }
  try {
    found->parse(text);
  } catch (const Error& error) {
    throw Error(join_text(where, ": ", error.what()));
  }
}

nlohmann::json to_json(const Fields& fields) {
  nlohmann::json object = nlohmann::json::object();
  for (const Field& one : fields) object[one.name] = one.value();
  return object;
}

std::string field_text(const nlohmann::json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "auto";
  if (!value.is_array()) {
    HS_CHECK(!value.is_object(), where, ": a value was expected, not a group of settings");
    return value.dump();
  }
  std::string joined;
  for (const nlohmann::json& item : value) {
    HS_CHECK(!item.is_structured(), where, ": a list of plain values was expected");
    joined += (joined.empty() ? "" : ",") + (item.is_string() ? escape_commas(item.get<std::string>()) : item.dump());
  }
  return joined;
}

void from_json(Fields& fields, const nlohmann::json& object, const std::string& where) {
  HS_CHECK(object.is_object(), where, ": an object of options was expected");
  for (const auto& [name, value] : object.items()) {
    set_field(fields, name, field_text(value, where + ", " + name), where);
  }
}

}  // namespace headshare
