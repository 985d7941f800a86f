#include "headshare/report/results/merge_results.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/report/results/results_cases.h"
#include "headshare/report/results/results_json.h"

namespace headshare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const Results& results) {
  std::vector<std::string> made;
  for (const Cell& cell : results.cells) made.push_back(name_of(cell.key));
  return made;
}

TEST(MergeTest, SchemesAndSeedsComeTogether) {
  Results a = loss_results({loss_cell("mha", 0, 2.0), loss_cell("sha", 0, 2.2)});
  Results b = loss_results({loss_cell("mqa", 0, 2.1), loss_cell("mha", 1, 2.05)});
  a.options = {{"steps", 100}, {"schemes", "mha,sha"}, {"threads", 2}, {"preset", "quick"}};
  b.options = {{"steps", 100}, {"schemes", "mqa"}, {"threads", 4}, {"preset", "small"}};
  b.command = "headshare compare again";
  b.environment = {{"cores", 4}};
  const std::vector<NamedResults> merged = merge_results({{"run/a", a}, {"run/b", b}});
  ASSERT_EQ(merged.size(), 1u);
  const Results& one = merged[0].results;
  EXPECT_THAT(names(one), ElementsAre("mha seed 0", "mha seed 1", "sha seed 0", "mqa seed 0"));
  EXPECT_EQ(one.planned.size(), 4u);
  EXPECT_EQ(one.command, a.command + "\nheadshare compare again");
  EXPECT_EQ(one.environment["run/a"]["cores"], 2);
  EXPECT_EQ(one.environment["run/b"]["cores"], 4);
  EXPECT_EQ(one.options, (nlohmann::json{{"steps", 100}}));  // what they share
}

// A program of today may have options that an earlier one lacked: not set, they change nothing.
TEST(MergeTest, UnsetOptionsThatOneRunLacksDoNotStandInTheWay) {
  const Results a = loss_results({loss_cell("mha", 0, 2.0)});
  Results b = loss_results({loss_cell("mha", 1, 2.1)});
  b.options["shared-qk"] = false;
  b.options["rotary-width"] = "auto";
  b.options["layer-key-widths"] = nlohmann::json::array();
  EXPECT_EQ(merge_results({{"a", a}, {"b", b}}).size(), 1u);
  b.options["shared-qk"] = true;
  EXPECT_EQ(merge_results({{"a", a}, {"b", b}}).size(), 2u);
  // An option whose usual value is something does not stand in the way either.
  EXPECT_EQ(merge_results({{"a", a}, {"b", b}}, {{"shared-qk", true}}).size(), 1u);
  EXPECT_EQ(merge_results({{"a", a}, {"b", b}}, {{"shared-qk", 7}}).size(), 2u);
  // An option that both runs have must be the same.
  Results c = b;
  c.options["shared-qk"] = "auto";
  b.options["shared-qk"] = false;
  EXPECT_EQ(merge_results({{"b", b}, {"c", c}}).size(), 2u);
}

// Files of format 2 have no such options.
TEST(MergeTest, OptionsOfVariantsDoNotStandInTheWay) {
  Results a = loss_results({loss_cell("mha", 0, 2.0)});
  Results b = loss_results({loss_cell("mha", 1, 2.1), loss_cell("rms", 1, 2.2)});
  b.variants = {{.name = "rms", .scheme = "mha", .options = {{"norm", "rms"}}}};
  b.options["variants"] = {"rms:norm=rms"};
  b.options["reference"] = b.options["peop-reference"] = "";
  for (Cell& cell : b.cells) cell.options = {{"norm", "rms"}};
  ASSERT_EQ(merge_results({{"a", a}, {"b", b}}).size(), 1u);
  const Results merged = merge_results({{"a", a}, {"b", b}})[0].results;
  EXPECT_EQ(variant_of(merged, "rms"), b.variants[0]);
  // An option that the runs do not share stays with the models of the run that had it.
  EXPECT_EQ(merged.cells.back().options.at("reference"), "");
  EXPECT_TRUE(merged.cells.front().options.empty());
  // A name for other options, or another reference, is another table.
  Results other = b;
  other.variants[0].options["norm"] = "layer";
  other.planned.back().seed = other.cells.back().key.seed = 2;
  EXPECT_EQ(merge_results({{"b", b}, {"other", other}}).size(), 2u);
  Results against = a;
  against.references.quality = "rms";
  EXPECT_EQ(merge_results({{"a", a}, {"against", against}}).size(), 2u);
}

// These are parts of one comparison: the one without mha measured against what it had.
TEST(MergeTest, ReferencesThatWereNotNamedAreThoseOfAll) {
  Results a = loss_results({loss_cell("mqa", 0, 2.1)});
  Results b = loss_results({loss_cell("mha", 0, 2.0), loss_cell("sha", 0, 2.2)});
  a.references = {.quality = "mqa", .peop = "mqa"};
  a.options = b.options = {{"reference", ""}, {"peop-reference", ""}};
  for (const std::vector<NamedResults>& order : {std::vector<NamedResults>{{"a", a}, {"b", b}}, {{"b", b}, {"a", a}}}) {
    const std::vector<NamedResults> merged = merge_results(order);
    ASSERT_EQ(merged.size(), 1u);
    EXPECT_EQ(merged[0].results.references, (References{.quality = "mha", .peop = "sha"}));
  }
  a.options["reference"] = "mqa";
  EXPECT_EQ(merge_results({{"a", a}, {"b", b}}).size(), 2u);
}

TEST(MergeTest, TheSameTextUnderAnotherNameIsOneTable) {
  Results a = loss_results({loss_cell("mha", 0, 2.0)});
  Results b = loss_results({loss_cell("sha", 0, 2.2)});
  a.subject.fingerprint = b.subject.fingerprint = "1234";
  a.options = {{"steps", 100}, {"text", {"./a.txt"}}, {"cache-dir", ""}};
  b.options = {{"steps", 100}, {"text", {"/data/a.txt"}}, {"cache-dir", "/elsewhere"}};
  EXPECT_EQ(merge_results({{"a", a}, {"b", b}}).size(), 1u);
  b.subject.data = "the same in other words";
  EXPECT_EQ(merge_results({{"a", a}, {"b", b}}).size(), 1u);
  b.subject.fingerprint = "5678";
  EXPECT_EQ(merge_results({{"a", a}, {"b", b}}).size(), 2u);
  // Results from before fingerprints can only tell texts by their names.
  b.subject.data = a.subject.data;
  a.subject.fingerprint = b.subject.fingerprint = "";
  EXPECT_EQ(merge_results({{"a", a}, {"b", b}}).size(), 2u);
}

TEST(MergeTest, ResultsOfBeforeGuessingWasRecordedAreTheSameTable) {
  const Results before = tuned_results({tuned_cell("mha", 0, 40, 60)});
  Results with = tuned_results({tuned_cell("mha", 1, 40, 60)});
  with.subject.task_chances = {0, 52.7};
  with.subject.chance = 26.35;
  const std::vector<NamedResults> merged = merge_results({{"a", before}, {"b", with}});
  ASSERT_EQ(merged.size(), 1U);
  EXPECT_EQ(merged.front().results.subject.chance, 26.35);
  Results other = tuned_results({tuned_cell("mha", 2, 40, 60)});
  other.subject.task_chances = {0, 50};
  other.subject.chance = 25;
  EXPECT_EQ(merge_results({{"a", with}, {"b", other}}).size(), 2U);
}

TEST(MergeTest, FineTunedEncodersOfOtherSizesAreAnotherTable) {
  Results a = accuracy_results({loss_cell("mha", 0, 2.0)});
  Results b = accuracy_results({loss_cell("sha", 0, 2.2)});
  a.subject.fingerprint = b.subject.fingerprint = "1234";
  b.subject.encoders = "masked LM, 4 layers of 128, 3000 steps";
  EXPECT_EQ(merge_results({{"a", a}, {"b", b}}).size(), 1u);  // one was written before encoders were recorded
  a.subject.encoders = "three-way, 4 layers of 128, 3000 steps";
  EXPECT_EQ(merge_results({{"a", a}, {"b", b}}).size(), 2u);
  a.subject.encoders = b.subject.encoders;
  EXPECT_EQ(merge_results({{"a", a}, {"b", b}}).size(), 1u);
}

TEST(MergeTest, TheSameCellCountsOnce) {
  const Results a = loss_results({loss_cell("mha", 0, 2.0)});
  Results b = a;
  b.cells[0].training_seconds = 99;  // another machine, the same losses
  b.cells[0].peak_memory_bytes = 1;
  b.cells[0].model = "elsewhere";
  b.cells[0].curve[1].seconds = 50;
  b.cells[0].machine = CellMachine{.host = "elsewhere"};
  EXPECT_EQ(names(merge_results({{"a", a}, {"b", b}})[0].results), names(a));
  b.cells[0].test_loss = std::nextafter(2.0, 3.0);
  EXPECT_EQ(error_message([&] {
              merge_results({{"run/a", a}, {"run/b", b}});
            }),
            "mha seed 0 differs between run/a and run/b: they cannot be one table; report them one by one");
}

// Whatever comes first: a correction that depended on the order would decide what is significant.
TEST(MergeTest, LooksAndTheirMarginStay) {
  Results once = loss_results({loss_cell("mha", 0, 2.0)});
  Results often = loss_results({loss_cell("mqa", 0, 2.1)});
  once.options["until-decided"] = 0;
  often.options["until-decided"] = 0.05;
  often.looks = {3, 4, 5};
  for (const auto& runs : {std::vector<NamedResults>{{"a", once}, {"b", often}}, {{"b", often}, {"a", once}}}) {
    const std::vector<NamedResults> merged = merge_results(runs);
    ASSERT_EQ(merged.size(), 1u);
    EXPECT_THAT(merged[0].results.looks, ElementsAre(3, 4, 5));
    EXPECT_EQ(merged[0].results.options.at("until-decided"), 0.05);
  }
}

TEST(MergeTest, OptionsOfTheWrongTypeAreNotTheSame) {
  Results a = loss_results({loss_cell("mha", 0, 2.0)});
  Results b = loss_results({loss_cell("mha", 1, 2.1)});
  b.references.quality = "mqa";
  a.options["reference"] = b.options["reference"] = 5;
  EXPECT_EQ(merge_results({{"a", a}, {"b", b}}).size(), 2u);
}

TEST(MergeTest, FinishedWinsOverFailedAndMissing) {
  const Results whole = loss_results({loss_cell("mha", 0, 2.0), loss_cell("sha", 0, 2.2)});
  Results broken = loss_results({});
  add_failed(&broken, {"mha", "", 0}, "killed");
  add_failed(&broken, {"mqa", "", 0}, "out of memory");
  broken.planned.push_back({"sha", "", 0});
  for (const bool first : {true, false}) {
    const Results merged = merge_results(first ? std::vector<NamedResults>{{"a", whole}, {"b", broken}}
                                               : std::vector<NamedResults>{{"b", broken}, {"a", whole}})[0]
                               .results;
    EXPECT_EQ(merged.cells.size(), 2u);
    ASSERT_EQ(merged.failed.size(), 1u);
    EXPECT_EQ(merged.failed[0].key.variant, "mqa");
    EXPECT_TRUE(is_complete(merged));
    EXPECT_THAT(to_text(to_json(merged)), HasSubstr("out of memory"));
  }
}

TEST(MergeTest, OthersStayApart) {
  const Results text = loss_results({loss_cell("mha", 0, 2.0)});
  const Results offsets = accuracy_results({loss_cell("mha", 0, 2.0)});
  Results longer = text;
  longer.options["steps"] = 200;
  Results timed = text;
  timed.match = "time";
  const std::vector<NamedResults> apart =
      merge_results({{"a", text}, {"b", offsets}, {"c", longer}, {"d", timed}, {"e", text}});
  ASSERT_EQ(apart.size(), 4u);
  EXPECT_EQ(apart[0].name, "a");
  EXPECT_EQ(apart[1].results.subject.name, "offsets");
}

// Runs of other schemes were made equal to other totals, or other times.
TEST(MergeTest, WhatWasMadeEqualAmongOtherSchemesStaysApart) {
  Results one = loss_results({loss_cell("mha", 0, 2.0)});
  one.match = "parameters";
  one.options["schemes"] = {"mha"};
  Results other = one;
  other.cells[0].key.seed = other.planned[0].seed = 1;
  EXPECT_EQ(merge_results({{"a", one}, {"b", other}}).size(), 1u);
  other.options["schemes"] = {"mha", "sha"};
  EXPECT_EQ(merge_results({{"a", one}, {"b", other}}).size(), 2u);
}

}  // namespace
}  // namespace headshare
