// This program is for tests/oracles/test_scores.py only. It takes one JSON request a line on standard input and gives
// one JSON answer a line on standard output.
//   {"do": "measure", "metric": "f1", "gold": [...], "predicted": [...]}    {"value": 0.5}, null for nan
//   {"do": "normalize" or "lower", "texts": [...]}                          {"texts": [...]}
//   {"do": "squad", "rules": "v2.0", "gold": {id: [answers]}, "predictions": {id: answer}, "odds": {id: 0.5},
//    "threshold": 1}                                                        {"exact_match": 50.0, ...}
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "headshare/metrics/answers.h"
#include "headshare/metrics/json_lines.h"
#include "headshare/metrics/metric.h"
#include "headshare/metrics/squad.h"
#include "headshare/text/unicode/lower_case.h"

namespace headshare {
namespace {

using Json = nlohmann::json;

Json measure_one(const Json& request) {
  static const std::map<std::string, Metric> names = {{"accuracy", Metric::kAccuracy}, {"f1", Metric::kF1},
                                                      {"macro_f1", Metric::kMacroF1},  {"matthews", Metric::kMatthews},
                                                      {"pearson", Metric::kPearson},   {"spearman", Metric::kSpearman}};
  const Metric metric = names.at(request["metric"]);
  Outcomes outcomes;
  if (metric == Metric::kPearson || metric == Metric::kSpearman) {
    outcomes.gold_numbers = request["gold"].get<std::vector<double>>();
    outcomes.predicted_numbers = request["predicted"].get<std::vector<double>>();
  } else {
    outcomes.gold = request["gold"].get<std::vector<int32_t>>();
    outcomes.predicted = request["predicted"].get<std::vector<int32_t>>();
  }
  return {{"value", measure({metric}, outcomes)[0].value}};
}

Json change_texts(const Json& request) {
  Json texts = Json::array();
  for (const std::string text : request["texts"]) {
    texts.push_back(request["do"] == "lower" ? lower_case(text) : normalize_answer(text));
  }
  return {{"texts", texts}};
}

Json score_questions(const Json& request) {
  std::vector<SquadGold> gold;
  for (const auto& [id, answers] : request["gold"].items()) gold.push_back({id, answers});
  SquadPredictions predictions{.answers = request["predictions"]};
  if (request.contains("odds")) {
    predictions.null_odds.emplace();
    for (const auto& [id, odds] : request["odds"].items()) predictions.null_odds->emplace_back(id, odds);
    predictions.null_threshold = request["threshold"];
  }
  const SquadRules rules = request["rules"] == "v1.1" ? SquadRules::kV1 : SquadRules::kV2;
  Json values;
  for (const Score& score : to_scores(score_squad(gold, predictions, rules))) values[score.name] = score.value;
  return values;
}

Json answer(const Json& request) {
  if (request["do"] == "measure") return measure_one(request);
  return request["do"] == "squad" ? score_questions(request) : change_texts(request);
}

}  // namespace
}  // namespace headshare

int main() { return headshare::answer_json_lines(std::cin, std::cout, std::cerr, headshare::answer); }
