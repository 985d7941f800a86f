// This is the only place that parses JSON. Each kind of file has its functions:
//   written by others             parse_json_input, read_json_input; members by json_string and so on
//   written by headshare          read_json_file; members by JsonReader (json_reader.h)
//   maybe cut short, or not ours  json_or_discarded; whole numbers by json_count
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/base/files/file.h"

namespace headshare {

// Parses one JSON document; refuses duplicate keys and nesting deeper than any tokenizer file has.
// Throws Error led by `where`.
nlohmann::json parse_json_input(std::string_view text, const std::string& where);

// Parses the JSON document in a file. Errors are led by its path; files of more than `most_bytes` are refused unread.
nlohmann::json read_json_input(const fs::path& path, uint64_t most_bytes);

// Returns the error of parse_json_input when the parser throws `error` over a text of `bytes` bytes.
Error json_error(const std::string& where, size_t bytes, const nlohmann::json::exception& error);

// Returns the object in a file that headshare wrote. Throws Error naming the path, followed by `advice`, when the file
// holds no object. Also refuses a key twice in one object, and nesting so deep that printing the object would overflow
// the stack.
nlohmann::json read_json_file(const fs::path& path, uint64_t most_bytes,
                              const std::string& advice = "it is damaged, or was never finished");

// Parses any JSON document. Where `text` is none, the result is discarded: a value that is no object and equals
// nothing. It serves texts that may be cut short, such as the last line that a run writes, and files that may not be
// ours.
nlohmann::json json_or_discarded(std::string_view text);

// Returns object[key]; throws Error led by `where` when `object` is not an object or lacks the key.
const nlohmann::json& json_member(const nlohmann::json& object, const std::string& key, const std::string& where);

// Tells whether there is nothing but blanks, tabs and line ends.
bool is_blank(std::string_view text);

// Each returns the value as its kind: a whole number from 0 to INT32_MAX, a text, a truth value, a list. `what` names
// it in the error.
int32_t json_id(const nlohmann::json& value, const std::string& what);
const std::string& json_string(const nlohmann::json& value, const std::string& what);
bool json_bool(const nlohmann::json& value, const std::string& what);
const nlohmann::json::array_t& json_list(const nlohmann::json& value, const std::string& what);

// Each does the same for object[key].
int32_t json_id(const nlohmann::json& object, const std::string& key, const std::string& where);
const std::string& json_string(const nlohmann::json& object, const std::string& key, const std::string& where);
// Returns the text object[key], which must not be blank.
const std::string& json_filled(const nlohmann::json& object, const std::string& key, const std::string& where);
bool json_bool(const nlohmann::json& object, const std::string& key, const std::string& where);
const nlohmann::json::array_t& json_list(const nlohmann::json& object, const std::string& key,
                                         const std::string& where);

// Returns the whole number that `value` is, if 64 bits with a sign hold it; nothing for anything else. nlohmann's own
// conversion makes larger numbers negative, and cuts off what stands behind a point.
std::optional<int64_t> json_integer(const nlohmann::json& value);

// Returns the same for numbers from 0 on.
std::optional<int64_t> json_count(const nlohmann::json& value);

// Returns the same for object[key]; nothing where it is missing, or `object` is no object.
std::optional<int64_t> json_count(const nlohmann::json& object, const char* key);

// Returns a text as it is, any other value as brief_json has it: some files write the one, some the other.
std::string text_or_json(const nlohmann::json& value);

// Refuses keys of `object` that are not among `known`.
void refuse_unknown_keys(const nlohmann::json& object, const std::vector<std::string>& known, const std::string& where);

// Returns a short rendering of any value for an error message: at most about 60 bytes.
std::string brief_json(const nlohmann::json& value);

// Returns a text of a file for an error message: 'text', or as brief_json has it where it is long, no UTF-8, or has
// control characters.
std::string brief_text(const std::string& text);

}  // namespace headshare
