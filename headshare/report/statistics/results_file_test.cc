#include "headshare/report/statistics/results_file.h"

#include <gmock/gmock.h>

#include <fstream>

#include "headshare/base/rng.h"
#include "headshare/base/testing.h"
#include "headshare/report/results/results_cases.h"
#include "headshare/report/results/results_json.h"

namespace headshare {
namespace results_file_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

Json written(const Results& results) { return Json::parse(to_text(results_file(results))); }

std::vector<std::string> keys(const nlohmann::ordered_json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

TEST(ResultsFileTest, IsTheFactsWithWhatIsComputedAmongThem) {
  Results results = example_results();
  results.looks = {3, 4};
  results.cells[0].waited.training = 0.4;
  EXPECT_THAT(keys(results_file(results)),
              ElementsAre("format", "format_version", "subject", "match", "command", "complete", "headline",
                          "reference", "peop_reference", "looks", "busy_speeds", "variants", "rows", "planned",
                          "failed", "cells", "environment", "options"));
  EXPECT_EQ(to_json(results_from_json(written(results), "r")), to_json(results));
  Json facts = written(results);
  for (const char* computed : {"headline", "busy_speeds", "rows"}) facts.erase(computed);
  EXPECT_EQ(facts, Json(to_json(results)));
}

TEST(ResultsFileTest, TasksOfABenchmark) {
  const Json object = written(tuned_results({tuned_cell("mha", 0, 40, 60), tuned_cell("sha", 0, 30, 64)}));
  EXPECT_EQ(object["rows"][1]["tasks"][1]["score"]["mean"], 64);
}

TEST(ResultsFileTest, NothingFinishedIsNull) {
  Results results = loss_results({loss_cell("mqa", 0, 2.0)});
  results.planned.push_back({"mha", "", 0});
  EXPECT_TRUE(written(results)["rows"][1]["quality"].is_null());
}

TEST(ResultsFileTest, HoldsRowsAndHeadlineForOtherReaders) {
  const Json object = written(loss_results({loss_cell("mha", 0, 2.0), loss_cell("sha", 0, 2.2)}));
  EXPECT_EQ(object["complete"], true);
  EXPECT_THAT(object["headline"].get<std::string>(), HasSubstr("mha has the best test perplexity"));
  ASSERT_EQ(object["rows"].size(), 2u);
  const Json& sha = object["rows"][1];
  EXPECT_EQ(sha["scheme"], "sha");
  EXPECT_NEAR(sha["minus_reference"]["mean"].get<double>(), 0.2, 1e-12);
  EXPECT_TRUE(sha["minus_reference"]["interval"].is_null());
  EXPECT_TRUE(sha["minus_reference"]["interval_over_seeds"].is_null());
  EXPECT_TRUE(sha["minus_reference"]["p_value"].is_null());
  EXPECT_EQ(sha["minus_reference"]["interval_over_blocks"].size(), 2u);
  EXPECT_TRUE(sha["peop"]["value"].is_null());
  EXPECT_THAT(sha["peop"]["reason_undefined"].get<std::string>(), HasSubstr("reference"));
  EXPECT_EQ(sha["attention_memory_saved_percent"], 25);
  EXPECT_FALSE(sha.contains("settings"));  // no sweep
  for (const SizeNumber& number : kSizeNumbers) EXPECT_TRUE(sha.contains(number.name)) << number.name;
  EXPECT_EQ(written(example_results())["complete"], false);
}

// Whatever is in a file, it is read or refused, and what was read can be summarised and written again.
TEST(ResultsFileTest, MutatedBytesAreReadOrRefused) {
  TemporaryDirectory directory;
  const fs::path file = directory / "results.json";
  const std::string whole = to_text(results_file(example_results()));
  Philox random(stream_key(1, "mutations"));
  int refused = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::string bytes = whole;
    for (uint64_t change = 0; change <= random.below(3); ++change) {
      const size_t at = random.below(bytes.size());
      switch (random.below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          bytes.erase(at, 1 + random.below(40));
          break;
        case 2:
          bytes.insert(at, bytes.substr(random.below(bytes.size()), 1 + random.below(40)));
          break;
        default:
          bytes[at] = "0123456789-eE.\"{}[],:"[random.below(21)];
      }
    }
    std::ofstream(file, std::ios::binary) << bytes;  // write_file would wait for the disk each time
    try {
      to_text(results_file(read_results(file)));
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_LT(refused, 400);
}

void mutate(Json* value, Philox* random) {
  if ((value->is_object() || value->is_array()) && !value->empty() && random->below(4) != 0) {
    auto at = value->begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random->below(value->size())));
    if (random->below(8) == 0) {
      value->erase(at);
    } else {
      mutate(&*at, random);
    }
    return;
  }
  const std::vector<Json> others = {nullptr, true, -1, 0, 1e29, -1e29, 9.3e18, INT64_MAX, "", "mha", Json::array()};
  *value = others[random->below(others.size())];
}

TEST(ResultsFileTest, MutatedValuesAreReadOrRefused) {
  const Json whole = written(example_results());
  Philox random(stream_key(2, "mutations"));
  int refused = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    Json object = whole;
    for (int change = 0; change < 2; ++change) mutate(&object, &random);
    try {
      to_text(results_file(results_from_json(object, "f.json")));
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_LT(refused, 1000);
}

}  // namespace results_file_test
}  // namespace headshare
