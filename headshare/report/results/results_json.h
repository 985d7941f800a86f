// Writes the facts of a comparison as JSON: what results.json and the cells' own files hold and what is read back from
// them. What results.json has besides, computed for readers that want no statistics, is in statistics/results_file.h.
#pragma once

#include "headshare/base/files/file.h"
#include "headshare/report/results/results.h"

namespace headshare {

inline constexpr int64_t kResultsFormatVersion = 3;
inline constexpr int64_t kOldestResultsFormat = 2;  // that is read

// docs/results-format.md describes the keys. Throws Error for a cell with a number that is not finite: such a cell has
// failed.
nlohmann::ordered_json to_json(const Results& results);

// Returns the text of a file: indented, a line feed at the end; bytes that are no UTF-8 are replaced.
std::string to_text(const nlohmann::ordered_json& object);

// Throws Error naming `where` and the key for anything that is not such an object, and for results of another format
// version than 2 and 3. In version 2 every scheme is a variant of its name. Keys it does not know are passed over, and
// so is what is computed from the facts.
Results results_from_json(const nlohmann::json& object, const std::string& where);

// Reads a file; the error about one that is no JSON ends with `advice`.
Results read_results(const fs::path& file, const std::string& advice = "it is damaged, or was never finished");

nlohmann::ordered_json to_json(const CellKey& key);
CellKey key_from_json(const nlohmann::json& object, const std::string& where);

nlohmann::ordered_json to_json(const Cell& cell);
Cell cell_from_json(const nlohmann::json& object, const std::string& where);

}  // namespace headshare
