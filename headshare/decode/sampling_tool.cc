// This program is for tests only. It reads a JSON list of {"options": {...}, "logits": [...], "history": [...]} (null
// is -infinity) from standard input and prints, for each, the probability of every token as JSON.
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "headshare/decode/sampling.h"

int main() {
  nlohmann::json results = nlohmann::json::array();
  for (const nlohmann::json& one : nlohmann::json::parse(std::cin)) {
    headshare::SamplingOptions options;
    headshare::Fields list = headshare::fields(options);
    headshare::from_json(list, one.at("options"), "options");
    std::vector<float> logits;
    for (const nlohmann::json& logit : one.at("logits")) {
      logits.push_back(logit.is_null() ? -INFINITY : logit.get<float>());
    }
    std::vector<double> probabilities(logits.size(), 0.0);
    const auto history = one.at("history").get<std::vector<int32_t>>();
    for (const auto& candidate : headshare::next_candidates(options, logits, history)) {
      probabilities[static_cast<size_t>(candidate.token)] = candidate.probability;
    }
    results.push_back(probabilities);
  }
  std::cout << results << '\n';
}
