#include "headshare/base/json/json_input.h"

#include <algorithm>
#include <cstdint>
#include <unordered_set>

#include "headshare/base/json/json_in_order.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/valid_utf8.h"

namespace headshare {

namespace {

// Shortens the parser's message. The parser quotes what it read last, which can be megabytes of an unclosed string, or
// bytes that no terminal should see.
std::string brief_reason(std::string reason) {
  if (reason.starts_with("[json.exception")) reason.erase(0, reason.find("] ") + 2);
  constexpr size_t kHead = 160;
  constexpr size_t kTail = 60;
  std::string text;
  for (size_t position = 0; position < reason.size();) {
    const size_t start = position;
    const bool valid = next_code_point(reason, &position) >= 0;
    if (!valid) ++position;
    // The loop takes whole characters, so that head and tail are made of them.
    const bool shown = start < kHead || start + kTail >= reason.size() || reason.size() <= kHead + kTail;
    if (shown) {
      text += valid ? reason.substr(start, position - start) : "?";
    } else if (!text.ends_with(" ... ")) {
      text += " ... ";
    }
  }
  return text;
}

// The parser calls this. It refuses nesting that is too deep (printing recurses: a million brackets would overflow the
// stack), and a key twice in one object, of which the parser would keep the last. `whose` ends the sentences.
class StrictParse {
 public:
  StrictParse(std::string where, size_t deepest, std::string whose)
      : where_(std::move(where)), deepest_(deepest), whose_(std::move(whose)) {}

  bool operator()(int /*depth*/, nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      keys_.emplace_back();
      HS_CHECK(keys_.size() <= deepest_, where_, ": JSON nested deeper than ", deepest_, " levels", whose_);
    } else if (event == Event::object_end || event == Event::array_end) {
      keys_.pop_back();
    } else if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      HS_CHECK(keys_.back().insert(key).second, where_, ": ", brief_text(key), " stands twice in one JSON object",
               whose_);
    }
    return true;
  }

 private:
  std::string where_;
  size_t deepest_;
  std::string whose_;
  std::vector<std::unordered_set<std::string>> keys_;  // of the objects and lists around the current position
};

// Returns the sentence without "line 1": a text of one line may be a line of a larger file, which the message names.
std::string without_line(std::string reason) {
  const std::string first = "at line 1, ";
  const size_t at = reason.find(first);
  return at == std::string::npos ? reason : reason.replace(at, first.size(), "at ");
}

Error parser_error(const std::string& where, size_t bytes, const nlohmann::json::exception& error,
                   const std::string& reason) {
  const auto* at = dynamic_cast<const nlohmann::json::parse_error*>(&error);
  return Error(join_text(where, ": not a JSON document of ", bytes, " bytes: ", reason,
                         at != nullptr && at->byte > bytes ? " (is the file cut short?)" : ""));
}

std::string named(const std::string& key, const std::string& where) { return where + ": " + brief_text(key); }

}  // namespace

Error json_error(const std::string& where, size_t bytes, const nlohmann::json::exception& error) {
  return parser_error(where, bytes, error, brief_reason(error.what()));
}

nlohmann::json parse_json_input(std::string_view text, const std::string& where) {
  try {
    return nlohmann::json::parse(text, StrictParse(where, 32, ""));
  } catch (const nlohmann::json::exception& error) {
    const bool one_line = text.find('\n') == std::string_view::npos;
    const std::string reason = brief_reason(error.what());
    throw parser_error(where, text.size(), error, one_line ? without_line(reason) : reason);
  }
}

nlohmann::json read_json_input(const fs::path& path, uint64_t most_bytes) {
  return parse_json_input(read_file(path, most_bytes), path.string());
}

nlohmann::ordered_json read_json_in_order(const fs::path& path, uint64_t most_bytes) {
  const std::string text = read_file(path, most_bytes);
  parse_json_input(text, path.string());
  return nlohmann::ordered_json::parse(text);
}

nlohmann::json read_json_file(const fs::path& path, uint64_t most_bytes, const std::string& advice) {
  nlohmann::json object =
      nlohmann::json::parse(read_file(path, most_bytes), StrictParse(path.string(), 64, ": headshare did not write it"),
                            /*allow_exceptions=*/false);
  HS_CHECK(!object.is_discarded(), path.string(), " is not JSON: ", advice);
  HS_CHECK(object.is_object(), path.string(), " is not a JSON object: ", advice);
  return object;
}

nlohmann::json json_or_discarded(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

const nlohmann::json& json_member(const nlohmann::json& object, const std::string& key, const std::string& where) {
  HS_CHECK(object.is_object(), where, ": must be a JSON object, not ", brief_json(object));
  const auto found = object.find(key);
  HS_CHECK(found != object.end(), where, ": has no ", brief_text(key));
  return *found;
}

int32_t json_id(const nlohmann::json& value, const std::string& what) {
  const std::optional<int64_t> id = json_count(value);
  HS_CHECK(id && *id <= INT32_MAX, what, " must be a whole number from 0 to ", INT32_MAX, ", not ", brief_json(value));
  return static_cast<int32_t>(*id);
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

const std::string& json_string(const nlohmann::json& value, const std::string& what) {
  HS_CHECK(value.is_string(), what, " must be a text, not ", brief_json(value));
  return value.get_ref<const std::string&>();
}

bool json_bool(const nlohmann::json& value, const std::string& what) {
  HS_CHECK(value.is_boolean(), what, " must be true or false, not ", brief_json(value));
  return value.get<bool>();
}

const nlohmann::json::array_t& json_list(const nlohmann::json& value, const std::string& what) {
  HS_CHECK(value.is_array(), what, " must be a list, not ", brief_json(value));
  return value.get_ref<const nlohmann::json::array_t&>();
}

int32_t json_id(const nlohmann::json& object, const std::string& key, const std::string& where) {
  return json_id(json_member(object, key, where), named(key, where));
}

const std::string& json_string(const nlohmann::json& object, const std::string& key, const std::string& where) {
  return json_string(json_member(object, key, where), named(key, where));
}

const std::string& json_filled(const nlohmann::json& object, const std::string& key, const std::string& where) {
  const std::string& text = json_string(object, key, where);
  HS_CHECK(!is_blank(text), where, ": ", brief_text(key), " is empty");
  return text;
}

bool json_bool(const nlohmann::json& object, const std::string& key, const std::string& where) {
  return json_bool(json_member(object, key, where), named(key, where));
}

const nlohmann::json::array_t& json_list(const nlohmann::json& object, const std::string& key,
                                         const std::string& where) {
  return json_list(json_member(object, key, where), named(key, where));
}

std::optional<int64_t> json_integer(const nlohmann::json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return std::nullopt;
  return value.get<int64_t>();
}

std::optional<int64_t> json_count(const nlohmann::json& value) {
  const std::optional<int64_t> number = json_integer(value);
  return number && *number >= 0 ? number : std::nullopt;
}

std::optional<int64_t> json_count(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? std::nullopt : json_count(*found);
}

std::string text_or_json(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : brief_json(value);
}

void refuse_unknown_keys(const nlohmann::json& object, const std::vector<std::string>& known,
                         const std::string& where) {
  HS_CHECK(object.is_object(), where, ": must be a JSON object, not ", brief_json(object));
  for (const auto& [key, value] : object.items()) {
    HS_CHECK(std::find(known.begin(), known.end(), key) != known.end(), where, ": unknown key ", brief_text(key),
             did_you_mean(key, known));
  }
}

std::string brief_json(const nlohmann::json& value) {
  constexpr size_t kLongest = 60;
  if (value.is_structured() && value.size() > 4) {
    return join_text(value.is_object() ? "an object of " : "a list of ", value.size(), " members");
  }
  std::string text = json_text(value);
  if (text.size() <= kLongest) return text;
  // The cut is before a code point, not inside one.
  text.resize(valid_utf8_prefix(std::string_view(text).substr(0, kLongest)));
  return text + "...";
}

std::string brief_text(const std::string& text) {
  constexpr size_t kLongest = 60;
  const auto is_control = [](char one) { return (one >= 0 && one < 0x20) || one == 0x7F; };
  const bool plain = text.size() <= kLongest && std::none_of(text.begin(), text.end(), is_control) &&
                     valid_utf8_prefix(text) == text.size();
  // Four bytes a character are enough for what is shown of it.
  return plain ? "'" + text + "'" : brief_json(text.substr(0, 4 * kLongest));
}

}  // namespace headshare
