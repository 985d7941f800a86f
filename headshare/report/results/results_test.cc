#include <gmock/gmock.h>

#include <limits>

#include "headshare/base/strings/base64.h"
#include "headshare/base/testing.h"
#include "headshare/report/results/results_cases.h"
#include "headshare/report/results/results_json.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace results_test {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Json written(const Results& results) { return Json::parse(to_text(to_json(results))); }

TEST(ResultsTest, ReadsWhatItWrote) {
  const Results results = example_results();
  TemporaryDirectory directory;
  write_file(directory / "results.json", to_text(to_json(results)));
  const Results read = read_results(directory / "results.json");
  EXPECT_EQ(to_json(read), to_json(results));  // to the last bit: nlohmann compares doubles by value
  EXPECT_EQ(read.cells[0].blocks, results.cells[0].blocks);
  EXPECT_EQ(read.subject.chance, results.subject.chance);
  EXPECT_EQ(read.failed[0].reason, results.failed[0].reason);
  EXPECT_EQ(read.planned, results.planned);
  EXPECT_TRUE(read.cells[1].scores.empty());
  EXPECT_EQ(variant_of(read, "sha"), results.variants[0]);
  EXPECT_EQ(read.references, results.references);
  EXPECT_EQ(to_text(to_json(read)), to_text(to_json(results)));
}

// A picture stands in pages as it is, so that nothing but a PNG image in base64 passes.
TEST(ResultsTest, HoldsPicturesOfExamples) {
  Results results = loss_results({loss_cell("mha", 0, 2.0)});
  results.subject.unit = "images";
  results.subject.examples = {
      {.item = 3, .input = "", .reference = "cat", .image = to_base64("\x89PNG\r\n and the rest")}};
  results.cells[0].examples = {"dog"};
  const Results read = results_from_json(written(results), "r");
  EXPECT_EQ(read.subject.examples, results.subject.examples);
  EXPECT_EQ(training_unit(read.subject), "images");
  for (const std::string& damaged : {std::string("\"><script>"), to_base64("GIF89a, no PNG")}) {
    results.subject.examples[0].image = damaged;
    EXPECT_THAT(error_message([&] { results_from_json(written(results), "r"); }), HasSubstr("image")) << damaged;
  }
}

// The file holds how long threads waited for a core; files from before have no such key.
TEST(ResultsTest, HoldsWhatSpeedsWaited) {
  Results results = loss_results({loss_cell("mha", 0, 2.0), loss_cell("sha", 0, 2.2)});
  EXPECT_FALSE(written(results)["cells"][0].contains("waited"));
  results.cells[0].waited = {.training = 0.25, .outputs = 0};
  const Json object = written(results);
  EXPECT_EQ(object["cells"][0]["waited"], Json({{"training", 0.25}, {"outputs", 0}}));
  const Results read = results_from_json(object, "r");
  EXPECT_EQ(read.cells[0].waited, results.cells[0].waited);
  EXPECT_EQ(read.cells[1].waited, WaitShares());
  Json wrong = object;
  wrong["cells"][0]["waited"]["training"] = -1;
  EXPECT_THAT(error_message([&] { results_from_json(wrong, "r"); }), HasSubstr("training"));
}

TEST(ResultsTest, TasksOfABenchmark) {
  Results results = tuned_results({tuned_cell("mha", 0, 40, 60), tuned_cell("sha", 0, 30, 64)});
  results.cells[0].tasks[0].metrics[0].value = std::nan("");
  results.subject.task_chances = {std::nullopt, 52.7};
  const Json object = written(results);
  EXPECT_EQ(object["subject"]["full_scale"], 100);
  EXPECT_TRUE(object["cells"][0]["tasks"][0]["metrics"][0]["value"].is_null());
  EXPECT_EQ(to_json(results_from_json(object, "r")), to_json(results));
  Json other = object;
  other["cells"][1]["tasks"].erase(0);
  EXPECT_EQ(error_message([&] { results_from_json(other, "r"); }),
            "r: the \"tasks\" of sha seed 0 are not those of \"subject\"");
  other = object;
  other["subject"]["task_chances"].erase(0);
  EXPECT_EQ(error_message([&] { results_from_json(other, "r"); }),
            "r: the \"task_chances\" of \"subject\" are 1, its \"tasks\" 2");
  // Files from before there were benchmarks have neither key.
  Json before = written(loss_results({loss_cell("mha", 0, 2.0)}));
  EXPECT_FALSE(before["subject"].contains("tasks"));
  before["subject"].erase("full_scale");
  EXPECT_EQ(results_from_json(before, "r").subject.full_scale, 1);
}

// Earlier programs wrote the file so: schemes, and two scores that had keys of their own.
TEST(ResultsTest, ReadsFormat2) {
  const Results results = loss_results({loss_cell("mha", 0, 2.0), loss_cell("el_lossless", 0, 2.0)});
  Json old = written(results);
  old["format_version"] = 2;
  for (const char* key : {"variants", "reference", "peop_reference"}) old.erase(key);
  for (const char* list : {"planned", "cells"}) {
    for (Json& one : old[list]) {
      one["scheme"] = one["variant"];
      one.erase("variant");
    }
  }
  for (Json& cell : old["cells"]) {
    for (const char* key : {"scores", "options", "weights_of"}) cell.erase(key);
    cell["trained"] = cell["scheme"] == "mha";
    cell["bits_per_byte"] = 1.0;
    cell["pseudo_perplexity"] = nullptr;
  }
  const Results read = results_from_json(old, "r");
  EXPECT_EQ(read.planned, results.planned);
  EXPECT_EQ(read.cells[0].weights_of, "");
  EXPECT_EQ(read.cells[1].weights_of, "mha");
  ASSERT_EQ(read.cells[0].scores.size(), 1u);
  EXPECT_EQ(read.cells[0].scores[0].name, "bits-per-byte");
  EXPECT_EQ(read.references, References());
  Results same = results;
  for (Cell& cell : same.cells) cell.scores = read.cells[0].scores;
  same.cells[1].weights_of = "mha";
  EXPECT_EQ(to_json(read), to_json(same));
}

TEST(ResultsTest, EveryNumberOfASizeIsKept) {
  Results results = loss_results({loss_cell("mha", 0, 2.0)});
  int64_t value = 7;
  for (const SizeNumber& number : kSizeNumbers) results.cells[0].size.*number.member = ++value;
  EXPECT_TRUE(results_from_json(written(results), "r").cells[0].size == results.cells[0].size);
  // A decoder has no source, and files from before embeddings were counted lack their parameters.
  results.cells[0].size.source_cache_bytes_per_token = 0;
  Json before = written(results);
  EXPECT_FALSE(before["cells"][0].contains("source_cache_bytes_per_token"));
  before["cells"][0].erase("embedding_parameters");
  EXPECT_EQ(results_from_json(before, "r").cells[0].size.embedding_parameters, 0);
  before["cells"][0].erase("total_parameters");
  EXPECT_THAT(error_message([&] { results_from_json(before, "r"); }), HasSubstr("\"total_parameters\" is missing"));
}

TEST(ResultsTest, TellsWhenItIsComplete) {
  Results results = loss_results({loss_cell("mha", 0, 2.0)});
  EXPECT_TRUE(is_complete(results));
  results.planned.push_back({"mha", "", 1});
  EXPECT_FALSE(is_complete(results));
  results.failed.push_back({{"mha", "", 1}, "killed"});
  EXPECT_TRUE(is_complete(results));
}

TEST(ResultsTest, RefusesToWriteWhatIsNoNumber) {
  Results results = loss_results({loss_cell("mha", 3, 2.0)});
  results.cells[0].quality = std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_message([&] { to_json(results.cells[0]); }),
            "mha seed 3: the quality is inf: report the cell as failed");
}

TEST(ResultsTest, ReplacesWhatIsNotUtf8) {
  Results results = loss_results({loss_cell("mha", 3, 2.0)});
  results.command = "headshare compare --text \xFF.txt";
  EXPECT_THAT(written(results)["command"].get<std::string>(), HasSubstr("\xEF\xBF\xBD.txt"));
}

struct Damage {
  const char* pointer;  // what is replaced
  Json value;           // by this; discarded: removed
  const char* message;
};

TEST(ResultsTest, NamesFileAndKeyOfWhatIsWrong) {
  const Json gone = Json::value_t::discarded;
  const std::vector<Damage> cases = {
      {"/format", "png", "f.json: \"format\" is not \"headshare comparison\""},
      {"/format_version", gone, "f.json: \"format_version\" is missing"},
      {"/format_version", 1,
       "f.json was written by an earlier headshare (format version 1, not 3): run the comparison"},
      {"/format_version", 4, "f.json was written by a newer headshare"},
      {"/subject", 4, "f.json: \"subject\" is not an object"},
      {"/subject/direction", "sideways", "f.json: subject: \"direction\" must be"},
      {"/subject/chance", "one", "f.json: subject: \"chance\" is not a number"},
      {"/subject/has_test_part", 1, "f.json: subject: \"has_test_part\" is not true or false"},
      {"/match", 7, "f.json: \"match\" is not a text"},
      {"/environment", Json::array(), "f.json: \"environment\" is not an object"},
      {"/planned", gone, "f.json: \"planned\" is missing"},
      {"/planned/0", "mha", "f.json: planned[0] is not a JSON object"},
      {"/planned/1/variant", "", "f.json: planned[1]: \"variant\" is empty"},
      {"/planned/1", {{"variant", "mha"}, {"setting", ""}, {"seed", 0}}, "\"planned\" holds mha seed 0 twice"},
      {"/variants/1/name", "mha", "f.json: \"variants\" holds mha twice"},
      {"/variants/0/options", 1, "f.json: variants[0]: \"options\" is not an object"},
      {"/reference", gone, "f.json: \"reference\" is missing"},
      {"/cells", Json::object(), "f.json: \"cells\" is not an array"},
      {"/cells/0/seed", 0.5, "f.json: cells[0]: \"seed\" is not a whole number"},
      {"/cells/0/seed", 18446744073709551615u, "f.json: cells[0]: \"seed\" is not a whole number"},
      {"/cells/0/seed", 5, "\"cells\" holds mha seed 5, which is not planned"},
      {"/cells/0/attention_parameters", 0, "f.json: cells[0]: \"attention_parameters\" must be at least 1, not 0"},
      {"/cells/0/test_loss", nullptr, "f.json: cells[0]: \"test_loss\" is not a number"},
      {"/cells/0/test_loss", 1e300, "f.json: cells[0]: \"test_loss\" is 1e+300, which nothing can have measured"},
      {"/cells/0/test_loss", -0.5, "f.json: cells[0]: \"test_loss\" must be at least 0, not -0.5"},
      {"/cells/1/validation_loss", -2, "f.json: cells[1]: \"validation_loss\" must be at least 0, not -2"},
      {"/cells/0/curve/1/validation_loss", -1, "cells[0]: curve[1]: \"validation_loss\" must be at least 0, not -1"},
      {"/cells/0/quality", 1.5, "f.json: the \"quality\" of mha seed 0 is 1.5; \"accuracy\" is from -1 to 1"},
      {"/cells/0/best_step", 101, "f.json: the \"best_step\" of mha seed 0 is 101, of 100 \"steps\""},
      {"/subject/unknown_share", 1.5, "f.json: subject: \"unknown_share\" must be at most 1, not 1.5"},
      {"/subject/unknown_share", -0.5, "f.json: subject: \"unknown_share\" must be at least 0, not -0.5"},
      {"/cells/0/blocks/2", "x", "f.json: cells[0]: blocks[2] is not a number"},
      {"/cells/0/block_targets", {1, 2}, "f.json: cells[0]: \"block_targets\" has 2 numbers, and there are 4 blocks"},
      {"/cells/0/block_targets", {1, 2, 3, 0}, "f.json: cells[0]: block_targets[3] is not a whole number above 0"},
      {"/cells/0/curve/1/step", gone, "f.json: cells[0]: curve[1]: \"step\" is missing"},
      {"/cells/0/training_seconds", -1, "f.json: cells[0]: \"training_seconds\" must be at least 0"},
      {"/failed/0/reason", gone, "f.json: failed[0]: \"reason\" is missing"},
      {"/failed/0", {{"variant", "mha"}, {"setting", ""}, {"seed", 0}, {"reason", "x"}}, "mha seed 0 is there twice"},
  };
  for (const Damage& damage : cases) {
    Json object = written(example_results());
    const Json::json_pointer pointer(damage.pointer);
    if (damage.value.is_discarded()) {
      object[pointer.parent_pointer()].erase(pointer.back());
    } else {
      object[pointer] = damage.value;
    }
    EXPECT_THAT(error_message([&] { results_from_json(object, "f.json"); }), HasSubstr(damage.message));
  }
}

TEST(ResultsTest, PerplexitiesAreNotBelowZero) {
  Json object = written(loss_results({loss_cell("mha", 0, 2.0)}));
  object["cells"][0]["quality"] = -7.4;
  EXPECT_EQ(error_message([&] { results_from_json(object, "f.json"); }),
            "f.json: the \"quality\" of mha seed 0 is -7.4, and at least 1 is possible");
  object["cells"][0]["quality"] = 1e6;
  object["cells"][0]["test_loss"] = -1e-9;  // of a model that errs nowhere
  EXPECT_EQ(error_message([&] { results_from_json(object, "f.json"); }), "no error");
}

// A perplexity below 1 is a negative loss under another name.
TEST(ResultsTest, NoLossIsBelowZeroWhereverItStands) {
  const Json whole = written(loss_results({loss_cell("mha", 0, 2.0)}));
  const auto refused = [&](const char* pointer, double value) {
    Json object = whole;
    object[Json::json_pointer(pointer)] = value;
    return error_message([&] { results_from_json(object, "f.json"); });
  };
  EXPECT_THAT(refused("/cells/0/quality", 0.9), HasSubstr("the \"quality\" of mha seed 0 is 0.9, and at least 1 is"));
  EXPECT_EQ(refused("/cells/0/quality", 1), "no error");
  EXPECT_THAT(refused("/cells/0/blocks/1", -2), HasSubstr("blocks[1] of mha seed 0 is -2, and at least 0 is possible"));
  EXPECT_THAT(refused("/cells/0/scores/0/value", -2), HasSubstr("the score \"bits-per-byte\" of mha seed 0 is -2"));
  Json pseudo = whole;
  pseudo["cells"][0]["scores"][0]["name"] = "pseudo-perplexity";
  pseudo["cells"][0]["scores"][0]["value"] = 0.5;
  EXPECT_THAT(error_message([&] { results_from_json(pseudo, "f.json"); }), HasSubstr("and at least 1 is possible"));
}

TEST(ResultsTest, StepsOfACurveRiseToThoseOfTheModel) {
  const Json whole = written(loss_results({loss_cell("mha", 0, 2.0)}));
  for (const auto& [point, step] : {std::pair(1, 99999), std::pair(1, 0), std::pair(2, 101)}) {
    Json object = whole;
    object["cells"][0]["curve"][point]["step"] = step;
    EXPECT_THAT(error_message([&] { results_from_json(object, "f.json"); }),
                HasSubstr(join_text("to step ", step, ", of 100 \"steps\"")));
  }
}

TEST(ResultsTest, RefusesWhatIsNoJson) {
  TemporaryDirectory directory;
  const fs::path file = directory / "results.json";
  EXPECT_THAT(error_message([&] { read_results(file); }), HasSubstr(file.string()));
  for (const std::string& content :
       {std::string(), std::string("{\"format\": "), std::string("{\"a\": 1e999}"), std::string("{\"\xFF\": 1}")}) {
    write_file(file, content);
    EXPECT_EQ(error_message([&] { read_results(file); }),
              file.string() + " is not JSON: it is damaged, or was never finished");
  }
  write_file(file, R"({"cells": [{"seed": 1, "test_loss": 2, "test_loss": 1}]})");
  EXPECT_THAT(error_message([&] { read_results(file); }), HasSubstr("'test_loss' stands twice in one JSON object"));
  write_file(file, "[1]");
  EXPECT_THAT(error_message([&] { read_results(file); }), HasSubstr("is not a JSON object"));
  // Printing it would need a stack frame for each of a million brackets.
  write_file(file, "{\"environment\": " + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}");
  EXPECT_THAT(error_message([&] { read_results(file); }), HasSubstr("nested deeper than 64 levels"));
}

}  // namespace results_test
}  // namespace headshare
