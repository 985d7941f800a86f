// For the programs that tests/oracles and bench/ ask: one JSON request a line on standard input, one JSON answer a line
// on standard output. No part of a library.
#pragma once

#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

namespace headshare {

// The exit code of main(): 1, with the reason on standard error, after the first request that `answer` throws for.
inline int answer_json_lines(nlohmann::json (*answer)(const nlohmann::json& request)) {
  try {
    for (std::string line; std::getline(std::cin, line);) {
      std::printf("%s\n", answer(nlohmann::json::parse(line)).dump().c_str());
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace headshare
