#include "headshare/data/benchmarks/segments.h"

#include "headshare/base/error.h"
#include "headshare/base/strings/valid_utf8.h"
#include "headshare/data/line_reader.h"
#include "headshare/metrics/translation/words.h"

namespace headshare {

std::vector<std::string> read_segments(const std::string& input) {
  LineReader reader(input);
  std::vector<std::string> segments;
  while (const auto line = reader.next()) {
    const size_t valid = valid_utf8_prefix(*line);
    HS_CHECK(valid == line->size(), reader.where(), ": not UTF-8 from byte ", valid,
             " of the line on; convert the file to UTF-8");
    segments.emplace_back(strip_right(*line));
  }
  HS_CHECK(!segments.empty(), reader.name(), " has no lines; one segment a line was expected");
  return segments;
}

std::vector<std::vector<std::string>> read_parallel_segments(const std::vector<std::string>& inputs) {
  std::vector<std::vector<std::string>> all;
  for (const std::string& input : inputs) {
    all.push_back(read_segments(input));
    HS_CHECK(all.back().size() == all[0].size(), inputs[0], " has ", all[0].size(), " lines and ", input, " has ",
             all.back().size(), "; the same line of each must be the same segment");
  }
  return all;
}

}  // namespace headshare
