// Serves the programs that tests/oracles and bench/ ask (*_tool.cc): one JSON request a line, one JSON answer a line.
#pragma once

#include <exception>
#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

namespace headshare {

// Returns the exit code of main(): 1, with the reason in `errors`, after the first request that `answer` throws for.
inline int answer_json_lines(std::istream& requests, std::ostream& answers, std::ostream& errors,
                             nlohmann::json (*answer)(const nlohmann::json& request)) {
  try {
    for (std::string line; std::getline(requests, line);) {
      answers << answer(nlohmann::json::parse(line)).dump() << "\n";
    }
    return 0;
  } catch (const std::exception& error) {
    errors << error.what() << "\n";
    return 1;
  }
}

}  // namespace headshare
