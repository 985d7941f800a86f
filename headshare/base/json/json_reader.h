// Reads the members of an object in a file that headshare wrote, and somebody may have changed since: every access
// names the file and the key.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "headshare/base/error.h"

namespace headshare {

// No measurement is larger, and sums of squares of numbers up to here stay finite.
inline constexpr double kLargestNumber = 1e30;

// Every access to a member throws Error where the member is missing or of another kind.
class JsonReader {
 public:
  // `where` leads every message: "run/results.json: cells[3]". `object` outlives the reader.
  JsonReader(const nlohmann::json& object, std::string where);

  // Tells whether there is such a member, other than null.
  bool has(const char* key) const;

  std::string text(const char* key) const;
  bool flag(const char* key) const;
  const nlohmann::json& object(const char* key) const;
  int64_t integer(const char* key, int64_t least = INT64_MIN) const;

  // Numbers reach up to kLargestNumber in size.
  double number(const char* key) const;
  double number_from(const char* key, double least) const;
  std::optional<double> optional_number(const char* key) const;  // nothing where !has(key)
  std::vector<double> numbers(const char* key) const;
  std::vector<std::string> texts(const char* key) const;

  // Returns read(element, where) for each element of an array.
  template <class Read>
  auto list(const char* key, const Read& read) const {
    const nlohmann::json& values = array(key);
    std::vector<decltype(read(values, std::string()))> made;
    made.reserve(values.size());
    for (size_t i = 0; i < values.size(); ++i) made.push_back(read(values[i], element(key, i)));
    return made;
  }

  // Returns how a message about one key begins: "run/results.json: \"steps\"".
  std::string name(const char* key) const { return join_text(where_, ": \"", key, "\""); }

 private:
  const nlohmann::json& at(const char* key) const;
  const nlohmann::json& array(const char* key) const;
  std::string element(const char* key, size_t at) const { return join_text(where_, ": ", key, "[", at, "]"); }

  const nlohmann::json& object_;
  std::string where_;
};

}  // namespace headshare
