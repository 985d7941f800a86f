#include "headshare/data/benchmarks/json_lines.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"

namespace headshare {

nlohmann::json parse_json_line(std::string_view line, const std::string& where) {
  // The parser would take a NUL byte for the end of the line.
  HS_CHECK(line.find('\0') == std::string_view::npos, where, ": not JSON: a NUL byte");
  nlohmann::json record = parse_json_input(line, where);
  HS_CHECK(record.is_object(), where, ": a JSON object was expected, not ", brief_json(record));
  return record;
}

nlohmann::json next_json_line(LineReader* lines) {
  while (const std::optional<std::string_view> line = lines->next()) {
    if (line->find_first_not_of(" \t\r") != std::string_view::npos) return parse_json_line(*line, lines->where());
  }
  return nullptr;
}

void for_each_json_line(const std::string& input, const UseRecord& use) {
  LineReader lines(input);
  bool any = false;
  for (nlohmann::json record = next_json_line(&lines); !record.is_null(); record = next_json_line(&lines)) {
    use(record, lines.where());
    any = true;
  }
  HS_CHECK(any, lines.name(), " is empty: no line has a JSON object");
}

}  // namespace headshare
