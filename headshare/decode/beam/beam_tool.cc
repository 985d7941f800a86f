// This program is for tests only. It reads one JSON object from standard input and prints JSON.
//
//   {"table": FILE, "rows": R, "vocabulary": V, "cases": [...]}
// searches with scores from FILE, float32 [R, V]: those behind the tokens (..., a, b) of sentence s are row
// (7919 s + 104729 a + 1299709 b) mod R; a is 0 where b is the first. A case has "options" (BeamOptions), "start",
// "end_of_text", "suppressed", "forced_first", "forced_last" (null: none) and "sentences": [{"id", "prefix"}]. Prints,
// for each case and sentence, the hypotheses.
//
//   {"time": {"sentences": B, "beam": K, "vocabulary": V, "steps": T, "ngram": N}}
// searches random scores and prints the milliseconds of processor time of a step, over all threads and without the
// model, and its moves.
#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "headshare/decode/beam/beam_search.h"
#include "headshare/decode/beam/test_model.h"

namespace headshare {
namespace {

using Json = nlohmann::json;

std::vector<float> read_table(const std::string& path, size_t size) {
  std::vector<float> table(size);
  std::ifstream in(path, std::ios::binary);
  in.read(reinterpret_cast<char*>(table.data()), static_cast<std::streamsize>(size * sizeof(float)));
  HS_CHECK(in.gcount() == static_cast<std::streamsize>(size * sizeof(float)), path, " is too short");
  return table;
}

std::optional<int32_t> optional_token(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<int32_t>());
}

SearchRequest read_case(const Json& one, std::vector<int64_t>* ids) {
  SearchRequest request;
  Fields list = fields(request.options);
  from_json(list, one.at("options"), "options");
  request.start = one.at("start");
  request.end_of_text = one.at("end_of_text");
  request.suppressed = one.at("suppressed").get<std::vector<int32_t>>();
  request.forced_first = optional_token(one.at("forced_first"));
  request.forced_last = optional_token(one.at("forced_last"));
  for (const Json& sentence : one.at("sentences")) {
    ids->push_back(sentence.at("id"));
    request.sentences.push_back({.prefix = sentence.at("prefix").get<std::vector<int32_t>>()});
  }
  return request;
}

Json search_case(const Json& one, const std::vector<float>& table, int64_t rows, int64_t vocabulary) {
  std::vector<int64_t> ids;
  const SearchRequest request = read_case(one, &ids);
  const auto scores = [&](int64_t sentence, std::span<const int64_t> history, std::span<float> out) {
    const int64_t before = history.size() > 1 ? history[history.size() - 2] : 0;
    const int64_t id = ids[static_cast<size_t>(sentence)];
    const int64_t row = (7919 * id + 104729 * before + 1299709 * history.back()) % rows;
    std::copy_n(table.begin() + row * vocabulary, vocabulary, out.begin());
  };
  HistoryModel model(static_cast<int64_t>(ids.size()), vocabulary, scores);
  Json result = Json::array();
  for (const auto& hypotheses : beam_search(model, request)) {
    Json list = Json::array();
    for (const Hypothesis& each : hypotheses) {
      list.push_back({{"tokens", each.tokens},
                      {"token_scores", each.token_scores},
                      {"sum", each.sum},
                      {"score", each.score},
                      {"ended", each.ended}});
    }
    result.push_back(list);
  }
  return result;
}

// This model answers at once, with one of a few tables of random scores, and counts the time of its caller.
class InstantModel : public StepScores {
 public:
  InstantModel(int64_t rows, int64_t vocabulary) {
    for (int i = 0; i < 4; ++i) {
      tables_.push_back(at::randn({rows, vocabulary}) * 3);
      tables_.back().select(1, 1).fill_(-30);  // end-of-text
    }
  }

  Tensor next(const std::vector<int64_t>& last) override {
    const std::clock_t now = std::clock();
    if (steps_++ > 0) milliseconds.push_back(1000.0 * static_cast<double>(now - asked_) / CLOCKS_PER_SEC);
    const Tensor& table = tables_[static_cast<size_t>(steps_ % 4)];
    asked_ = std::clock();
    return table.narrow(0, 0, static_cast<int64_t>(last.size()));
  }
  void widen(int64_t) override {}
  void move(std::span<const RowMove> moves) override { moved += static_cast<int64_t>(moves.size()); }
  void keep(std::span<const int64_t>) override {}

  std::vector<double> milliseconds = {};
  int64_t moved = 0;

 private:
  std::vector<Tensor> tables_ = {};
  int64_t steps_ = 0;
  std::clock_t asked_ = 0;
};

Json time_search(const Json& one) {
  SearchRequest request{.end_of_text = 1};
  request.options.beam = one.at("beam");
  request.options.max_length = one.at("steps");
  request.options.no_repeat_ngram = one.at("ngram");
  request.sentences.resize(one.at("sentences").get<size_t>());
  InstantModel model(static_cast<int64_t>(request.sentences.size()) * request.options.beam, one.at("vocabulary"));
  beam_search(model, request);
  std::vector<double>& times = model.milliseconds;
  std::sort(times.begin(), times.end());
  return {{"threads", at::get_num_threads()},
          {"least", times.front()},
          {"median", times[times.size() / 2]},
          {"moves", static_cast<double>(model.moved) / static_cast<double>(times.size())}};
}

}  // namespace
}  // namespace headshare

int main() {
  const nlohmann::json input = nlohmann::json::parse(std::cin);
  if (input.contains("time")) {
    std::cout << headshare::time_search(input.at("time")) << '\n';
    return 0;
  }
  const int64_t rows = input.at("rows");
  const int64_t vocabulary = input.at("vocabulary");
  const auto table = headshare::read_table(input.at("table"), static_cast<size_t>(rows * vocabulary));
  nlohmann::json results = nlohmann::json::array();
  for (const nlohmann::json& one : input.at("cases")) {
    results.push_back(headshare::search_case(one, table, rows, vocabulary));
  }
  std::cout << results << '\n';
}
