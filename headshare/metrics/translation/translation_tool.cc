// This program is for tests/oracles/test_translation_scores.py and bench/translation_scores only. It takes one JSON
// request a line on standard input and gives one JSON answer a line on standard output.
//   {"do": "tokenize", "tokenizer": "13a", "texts": [...]}             {"words": [[...], ...]}
//   {"do": "tokenize", "tokenizer": "tercom", OPTIONS, "texts": [...]}
//   {"do": "draw", "seed": 1, "bound": 10, "count": 5}                 {"numbers": [...]}, for a bound of 2: {"bits"}
//   {"do": "score", "metric": "bleu", OPTIONS, "systems": [[...], ...], "references": [[...], ...],
//    "test": "bootstrap" or "randomisation" or "interval", "samples": 1000, "seed": 12345, "passes": 3}
//     {"name": "BLEU", "signature": "...", "systems": [{"score": 26.6, "detail": "...", "sentences": [...],
//      "mean", "half_width", "p_value"}, ...], "seconds": [...]}
// OPTIONS are named as the fields of BleuOptions, ChrfOptions and TercomOptions. "seconds" are CPU seconds of all of a
// request's scores and tests, once for each pass.
#include <ctime>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "headshare/metrics/json_lines.h"
#include "headshare/metrics/translation/bleu.h"
#include "headshare/metrics/translation/chrf.h"
#include "headshare/metrics/translation/numpy_generator.h"
#include "headshare/metrics/translation/resampling.h"
#include "headshare/metrics/translation/signature.h"
#include "headshare/metrics/translation/ter.h"
#include "headshare/metrics/translation/words.h"

namespace headshare {
namespace {

using Json = nlohmann::json;

BleuTokenizer tokenizer_of(const std::string& name) {
  for (const BleuTokenizer one :
       {BleuTokenizer::k13a, BleuTokenizer::kIntl, BleuTokenizer::kChar, BleuTokenizer::kNone, BleuTokenizer::kZh}) {
    if (tokenizer_name(one) == name) return one;
  }
  throw std::runtime_error("no tokenizer " + name);
}

TercomOptions tercom_options(const Json& request) {
  return {.case_sensitive = request.value("case_sensitive", false),
          .normalized = request.value("normalized", false),
          .no_punctuation = request.value("no_punctuation", false),
          .asian_support = request.value("asian_support", false)};
}

BleuOptions bleu_options(const Json& request) {
  static const std::map<std::string, BleuSmoothing> smoothings = {{"exp", BleuSmoothing::kExp},
                                                                  {"floor", BleuSmoothing::kFloor},
                                                                  {"add-k", BleuSmoothing::kAddK},
                                                                  {"none", BleuSmoothing::kNone}};
  BleuOptions options{.tokenizer = tokenizer_of(request.value("tokenizer", "13a")),
                      .lowercase = request.value("lowercase", false),
                      .smoothing = smoothings.at(request.value("smoothing", "exp")),
                      .effective_order = request.value("effective_order", false)};
  if (request.contains("smooth_value")) options.smooth_value = request["smooth_value"].get<double>();
  return options;
}

ChrfOptions chrf_options(const Json& request) {
  return {.char_order = request.value("char_order", int64_t{6}),
          .word_order = request.value("word_order", int64_t{0}),
          .beta = request.value("beta", int64_t{2}),
          .lowercase = request.value("lowercase", false),
          .whitespace = request.value("whitespace", false),
          .eps_smoothing = request.value("eps_smoothing", false)};
}

std::unique_ptr<TranslationMetric> metric_of(const Json& request) {
  if (request["metric"] == "bleu") return std::make_unique<Bleu>(bleu_options(request));
  if (request["metric"] == "chrf") return std::make_unique<Chrf>(chrf_options(request));
  return std::make_unique<Ter>(tercom_options(request));
}

Json tokenize_all(const Json& request) {
  const std::string name = request["tokenizer"];
  Json words = Json::array();
  for (const std::string text : request["texts"]) {
    const std::string line =
        name == "tercom" ? tercom_words(tercom_options(request), text) : tokenize(tokenizer_of(name), text);
    words.push_back(split_words(line));
  }
  return {{"words", words}};
}

Json draw(const Json& request) {
  NumpyGenerator generator(request["seed"].get<uint64_t>());
  const uint32_t bound = request["bound"];
  if (bound == 2) {
    std::vector<uint8_t> bits(request["count"].get<size_t>());
    generator.draw_bits(bits);
    return {{"bits", bits}};
  }
  std::vector<uint32_t> numbers(request["count"].get<size_t>());
  generator.draw_below(bound, numbers);
  return {{"numbers", numbers}};
}

Json describe(const TranslationMetric& metric, const SegmentTable& table, const SystemResult& result) {
  const std::vector<MixedNumber> sums = column_sums(table);
  Json object = {{"score", result.score}, {"detail", metric.detail(sums)}, {"sentences", Json::array()}};
  for (size_t i = 0; i < table.segments(); ++i) {
    const auto row = table.row(i);
    object["sentences"].push_back(metric.score(std::vector<MixedNumber>(row.begin(), row.end())).value);
  }
  if (result.interval) {
    object["mean"] = result.interval->mean;
    object["half_width"] = result.interval->half_width;
  }
  if (result.p_value) object["p_value"] = *result.p_value;
  return object;
}

std::vector<SystemResult> results_of(const TranslationMetric& metric, const std::vector<SegmentTable>& tables,
                                     const Json& request) {
  const Resampling resampling{.samples = request.value("samples", int64_t{1000}),
                              .seed = request.value("seed", uint64_t{12345})};
  const std::string test = request.value("test", "");
  if (test == "bootstrap") return paired_bootstrap(metric, tables, resampling);
  if (test == "randomisation") return paired_randomisation(metric, tables, resampling);
  std::vector<SystemResult> results;
  for (const SegmentTable& one : tables) {
    results.push_back({.score = metric.score(column_sums(one)).value});
    if (test == "interval") results.back().interval = bootstrap_interval(metric, one, resampling);
  }
  return results;
}

Json score(const Json& request) {
  const std::unique_ptr<TranslationMetric> metric = metric_of(request);
  const ReferenceTexts references = request["references"];
  const std::vector<Segments> systems = request["systems"];
  Json answer = {{"name", metric->name()},
                 {"signature", signature(*metric, {.references = references.size(), .version = "test"})},
                 {"systems", Json::array()},
                 {"seconds", Json::array()}};
  std::vector<SegmentTable> tables;
  std::vector<SystemResult> results;
  for (int pass = 0; pass < request.value("passes", 1); ++pass) {
    const std::clock_t began = std::clock();
    tables.clear();
    for (const Segments& one : systems) tables.push_back(metric->measure(one, references));
    results = results_of(*metric, tables, request);
    answer["seconds"].push_back(static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
  }
  for (size_t s = 0; s < systems.size(); ++s) {
    answer["systems"].push_back(describe(*metric, tables[s], results[s]));
  }
  return answer;
}

Json answer(const Json& request) {
  if (request["do"] == "tokenize") return tokenize_all(request);
  return request["do"] == "draw" ? draw(request) : score(request);
}

}  // namespace
}  // namespace headshare

int main() { return headshare::answer_json_lines(std::cin, std::cout, std::cerr, headshare::answer); }
