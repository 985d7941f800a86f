// JSON read from files we did not write: strict parsing, and members with errors that name them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/base/error.h"

namespace headshare {

// Parses one JSON document; refuses duplicate keys and nesting deeper than any tokenizer file has.
// Throws Error led by `where`.
nlohmann::json parse_json_input(std::string_view text, const std::string& where);

// What parse_json_input throws when the parser throws `error` over a text of `bytes` bytes.
Error json_error(const std::string& where, size_t bytes, const nlohmann::json::exception& error);

// object[key]; throws Error led by `where` when `object` is not an object or lacks the key.
const nlohmann::json& json_member(const nlohmann::json& object, const std::string& key, const std::string& where);

// Whether there is nothing but blanks, tabs and line ends.
bool is_blank(std::string_view text);

// A whole number from 0 to INT32_MAX, a text, a truth value, a list: `what` names it in the error.
int32_t json_id(const nlohmann::json& value, const std::string& what);
const std::string& json_string(const nlohmann::json& value, const std::string& what);
bool json_bool(const nlohmann::json& value, const std::string& what);
const nlohmann::json::array_t& json_list(const nlohmann::json& value, const std::string& what);

// The same of object[key].
int32_t json_id(const nlohmann::json& object, const std::string& key, const std::string& where);
const std::string& json_string(const nlohmann::json& object, const std::string& key, const std::string& where);
// Likewise, and not blank.
const std::string& json_filled(const nlohmann::json& object, const std::string& key, const std::string& where);
bool json_bool(const nlohmann::json& object, const std::string& key, const std::string& where);
const nlohmann::json::array_t& json_list(const nlohmann::json& object, const std::string& key,
                                         const std::string& where);

// A text as it is, any other value as brief_json has it: what some files write the one way and some the other.
std::string text_or_json(const nlohmann::json& value);

// Refuses keys of `object` that are not among `known`.
void refuse_unknown_keys(const nlohmann::json& object, const std::vector<std::string>& known, const std::string& where);

// A short rendering of any value for an error message: at most about 60 bytes.
std::string brief_json(const nlohmann::json& value);

// A text of a file for an error message: 'text', or as brief_json has it where it is long, no UTF-8, or
// has control characters.
std::string brief_text(const std::string& text);

}  // namespace headshare
