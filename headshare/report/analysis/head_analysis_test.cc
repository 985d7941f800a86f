#include "headshare/report/analysis/head_analysis.h"

#include <gmock/gmock.h>

#include <cmath>

#include "headshare/report/analysis/analysis_json.h"
#include "headshare/report/analysis/analysis_page.h"
#include "headshare/report/analysis/analysis_wording.h"

namespace headshare {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

HeadAnalysis example() {
  const Spectrum spectrum{.values = {3, 1, 0}, .value_dimensions = 1, .dimensions = 4};
  const HeadSimilarity weights = {{1, -0.5, 0.25}, {-0.5, 1, 0.125}, {0.25, 0.125, 1}};
  HeadAnalysis made{.model = "<model>",
                    .kind = "decoder",
                    .scheme = "mha",
                    .layers = 1,
                    .depth = 1,
                    .heads = 3,
                    .head_width = 4,
                    .full_key_width = 12};
  made.layer.push_back({"layer 1", {spectrum, spectrum, spectrum}, spectrum, spectrum, weights, {}});
  made.before = {.scheme = "mha",
                 .name = "mha",
                 .command = {},
                 .impossible = {},
                 .layers = {},
                 .size = {.attention_parameters = 400, .total_parameters = 1000, .cache_bytes_per_token = 64},
                 .milliseconds = 2};
  ConversionAnalysis mqa = made.before;
  mqa.scheme = mqa.name = "mqa";
  mqa.command = "--to mqa";
  mqa.size.cache_bytes_per_token = 16;
  mqa.layers = {{.scores = 0.3, .values = 0.5}};
  ConversionAnalysis skv = mqa;
  skv.scheme = skv.name = "skv";
  skv.layers = {{.scores = 0.05, .values = 0.04}};
  skv.size.cache_bytes_per_token = 32;
  ConversionAnalysis impossible{
      .scheme = "gqa", .name = "gqa:2", .command = "--to gqa:2", .impossible = "why", .layers = {}};
  made.conversions = {mqa, skv, impossible};
  return made;
}

// Returns an analysis of a model with normed queries and keys; `seen`: a text was given.
HeadAnalysis refused_example(bool seen) {
  HeadAnalysis made = example();
  made.refusal = "norms stand in between";
  for (ConversionAnalysis& one : made.conversions) {
    one.layers.clear();
    one.command.clear();
  }
  if (seen) {
    made.text = {"book.txt"};
    made.layer[0].maps = made.layer[0].weights;
  } else {
    made.layer = {{.layer = "layer 1", .heads = {}, .joint = {}, .stacked = {}, .weights = {}, .maps = {}}};
  }
  return made;
}

TEST(Spectrum, SaysHowManyDimensionsHoldTheEnergy) {
  const Spectrum spectrum{.values = {3, 1, 0}, .value_dimensions = 2, .dimensions = 6};
  EXPECT_THAT(spectrum.shares(), ElementsAre(DoubleNear(0.9, 1e-12), DoubleNear(0.1, 1e-12), 0));
  EXPECT_EQ(spectrum.width_for(0.9), 2);
  EXPECT_EQ(spectrum.width_for(0.91), 4);
  EXPECT_EQ(spectrum.width_for(0), 0);
  const Spectrum nothing{.values = {0, 0}, .dimensions = 2};
  EXPECT_THAT(nothing.shares(), ElementsAre(0, 0));
  EXPECT_EQ(nothing.width_for(0.9), 0);
}

TEST(HeadSimilarity, NamesTheMostAlikeHeads) {
  const HeadSimilarity heads = example().layer[0].weights;
  const HeadPair pair = *most_alike(heads);
  EXPECT_EQ(pair.first, 0U);
  EXPECT_EQ(pair.second, 2U);
  EXPECT_NEAR(*mean_similarity(heads), (-0.5 + 0.25 + 0.125) / 3, 1e-12);
  EXPECT_FALSE(most_alike({{1}}).has_value());
  EXPECT_FALSE(mean_similarity({{1}}).has_value());
}

TEST(AnalysisWording, NamesTheConversionThatSavesMostForLittle) {
  EXPECT_THAT(finding_text(example()),
              HasSubstr("skv saves the most cache (-50%) at an error of 5.00%, the same time."));
  HeadAnalysis lossy = example();
  lossy.conversions.erase(lossy.conversions.begin() + 1);
  EXPECT_THAT(finding_text(lossy),
              HasSubstr("the closest is mqa with 50.00%, the same time. A conversion with a larger error"));
  lossy.conversions.clear();
  EXPECT_THAT(finding_text(lossy), HasSubstr("No conversion saves cache"));
}

TEST(AnalysisWording, SaysWhyNothingIsConverted) {
  for (const bool seen : {false, true}) {
    const HeadAnalysis analysis = refused_example(seen);
    EXPECT_THAT(finding_text(analysis), EndsWith("Weights cannot be converted: norms stand in between. The table has "
                                                 "what models of other schemes cost."));
    EXPECT_EQ(finding_text(analysis).starts_with("Only a text shows how alike these heads are (--text)."), !seen);
    const auto json = to_json(analysis);
    EXPECT_EQ(json["refusal"], "norms stand in between");
    EXPECT_EQ(json["score_maps_of"], seen ? nlohmann::json("text") : nlohmann::json());
    EXPECT_EQ(json["layers"][0]["joint"].is_null(), !seen);
    EXPECT_TRUE(json["conversions"][0]["error"]["scores"].is_null() && json["conversions"][0]["convert"].is_null());
    EXPECT_EQ(json["conversions"][0]["cache_bytes_per_token"], 16);
    const std::string page = analysis_page(analysis);
    EXPECT_EQ(page.find("similarity-1") != std::string::npos, seen);
    EXPECT_EQ(page.find("energy-1") != std::string::npos, seen);
    EXPECT_EQ(page.find("saving-cache"), std::string::npos) << "there are no errors to draw";
    EXPECT_THAT(page, HasSubstr("What schemes cost and save"));
    for (const std::string& line : explanations(analysis)) EXPECT_THAT(line, Not(HasSubstr("W_Q")));
  }
}

// A conversion that saves memory and takes more time says so, and is not recommended.
TEST(AnalysisWording, NeverRecommendsWhatIsSlow) {
  HeadAnalysis analysis = example();
  ConversionAnalysis& skv = analysis.conversions[1];
  skv.milliseconds = 2.24 * 2;
  EXPECT_THAT(
      finding_text(analysis),
      HasSubstr("No conversion is recommended: the only one that saves cache and keeps the larger error of scores "
                "and values within 10% takes over 10% more time. skv saves the most cache (-50%) at an error of "
                "5.00%, 124% more time."));
  ConversionAnalysis quick = skv;
  quick.name = "gqa:3";
  quick.size.cache_bytes_per_token = 48;
  quick.milliseconds = 1.5;
  analysis.conversions.push_back(quick);
  EXPECT_THAT(
      finding_text(analysis),
      HasSubstr("and take at most 10% more time, gqa:3 saves the most cache (-25%) at an error of 5.00%, 25% less "
                "time. skv saves more cache (-50%) at an error of 5.00%, 124% more time."));
  analysis.conversions[1].milliseconds.reset();  // nobody measured it
  EXPECT_THAT(finding_text(analysis), HasSubstr("skv saves the most cache (-50%) at an error of 5.00%."));
}

// Other programs can make any conversion seem slow or fast.
TEST(AnalysisWording, TimesOfABusyMachineDecideNothing) {
  HeadAnalysis analysis = example();
  analysis.busy = true;
  analysis.conversions[1].milliseconds = 100;
  const std::string measure =
      " The machine was busy, so times were left out of account: measure them on an idle machine.";
  EXPECT_THAT(finding_text(analysis),
              EndsWith("Of the conversions that keep the larger error of scores and values within 10%, skv saves the "
                       "most cache (-50%) at an error of 5.00%." +
                       measure));
  analysis.conversions.erase(analysis.conversions.begin() + 1);
  EXPECT_THAT(finding_text(analysis), HasSubstr("the closest is mqa with 50.00%. A conversion with a larger error"));
  EXPECT_THAT(finding_text(analysis), EndsWith(measure));
}

// A time that other programs took part in is grey, and says so wherever it stands.
TEST(AnalysisWording, MarksTimesOfABusyMachine) {
  HeadAnalysis analysis = example();
  EXPECT_THAT(analysis_page(analysis), Not(HasSubstr(">busy machine<")));
  analysis.busy = true;
  EXPECT_THAT(testing::PrintToString(explanations(analysis)), HasSubstr("The machine was busy"));
  const std::string page = analysis_page(analysis);
  EXPECT_THAT(page, HasSubstr("<span class=\"busy\">2.000</span><span class=\"sub\">busy machine</span>"));
  EXPECT_THAT(page, HasSubstr(">time, busy machine, % of the model as it is</text>"));
  EXPECT_THAT(page, HasSubstr("class=\"m s0 grey\""));
  EXPECT_EQ(to_json(analysis)["busy_machine"], true);
}

// An error that is no number is no small error.
TEST(AnalysisWording, NeverRecommendsWhatIsNoNumber) {
  HeadAnalysis damaged = example();
  damaged.conversions[0].layers[0].scores = damaged.conversions[0].layers[0].values = NAN;
  EXPECT_THAT(finding_text(damaged), HasSubstr("skv saves the most"));
  damaged.conversions[1].layers[0].scores = 0.4;
  EXPECT_THAT(finding_text(damaged), HasSubstr("the closest is skv"));
}

TEST(AnalysisWording, TellsChanges) {
  EXPECT_EQ(change_text(3, 4), "-25%");
  EXPECT_EQ(change_text(5, 4), "+25%");
  EXPECT_EQ(change_text(4, 4), "±0%");
  EXPECT_EQ(error_text(0.2273), "22.73%");
  EXPECT_EQ(similarity_text(-0.001), "0.00");
  EXPECT_EQ(similarity_text(-0.25), "-0.25");
}

TEST(AnalysisWording, CountsOneAndMore) {
  HeadAnalysis one = example();
  EXPECT_EQ(subject_text(one), "decoder of scheme mha, 1 layer; 3 heads of width 4");
  one.depth = 4;
  EXPECT_EQ(subject_text(one), "decoder of scheme mha, 4 layers that share 1 set of parameters; 3 heads of width 4");
  one.text = {"a.txt"};
  one.text_tokens = one.map_tokens = 1;
  one.layer[0].maps = one.layer[0].weights;
  one.timed_tokens = 2;
  one.iterations = 1;
  for (const std::string& line : explanations(one)) {
    EXPECT_THAT(line, Not(HasSubstr(" 1 tokens"))) << line;
    EXPECT_THAT(line, Not(HasSubstr(" 1 iterations"))) << line;
  }
  EXPECT_THAT(finding_text(one), HasSubstr("Their attention on the text has a mean similarity of -0.04"));
}

TEST(AnalysisWording, SaysThatConvertTakesMoreIterationsWhereItDoes) {
  HeadAnalysis analysis = example();
  const auto all = [&] { return testing::PrintToString(explanations(analysis)); };
  analysis.convert_iterations = 60;
  analysis.iterations = 8;
  EXPECT_THAT(all(), HasSubstr("8 iterations at most; headshare convert takes 60 by default"));
  analysis.iterations = 60;
  EXPECT_THAT(all(), Not(HasSubstr("by default")));
}

TEST(AnalysisPage, HoldsEveryPartAndEscapesNames) {
  const std::string page = analysis_page(example());
  for (const char* part : {"&lt;model&gt;", "--to mqa", "gqa:2 is not possible: why", "id=\"saving-cache\"",
                           "id=\"saving-time\"", "id=\"similarity-1\"", "id=\"energy-1\"", "id=\"values\""}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  EXPECT_THAT(page, Not(HasSubstr("<model>")));
  EXPECT_THAT(page, Not(HasSubstr("attention on the text")));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  HeadAnalysis with_text = example();
  with_text.text = {"a.txt"};
  with_text.layer[0].maps = {{1, 0.5, 0.5}, {0.5, 1, 0.5}, {0.5, 0.5, 1}};  // all alike: no range of colours
  EXPECT_THAT(analysis_page(with_text), HasSubstr("attention on the text"));
  EXPECT_THAT(analysis_page(with_text), Not(HasSubstr("nan")));
}

// The cells of many heads share a path, so that not each has a text.
TEST(AnalysisPage, OfManyHeadsStaysSmall) {
  constexpr size_t kHeads = 96;
  HeadAnalysis analysis = example();
  HeadSimilarity& heads = analysis.layer[0].weights;
  heads.assign(kHeads, std::vector<double>(kHeads));
  for (size_t i = 0; i < kHeads; ++i) {
    for (size_t j = 0; j < kHeads; ++j) heads[i][j] = i == j ? 1 : std::sin(static_cast<double>(i + j));
  }
  const size_t without = analysis_page(example()).size();
  const std::string page = analysis_page(analysis);
  EXPECT_LT(page.size(), without + 400'000);
  EXPECT_THAT(page, HasSubstr("class=\"heat below\""));
  EXPECT_THAT(page, Not(HasSubstr("heads 95 and 96: ")));
  EXPECT_THAT(page, HasSubstr("aria-label=\"head 96: most alike is head "));
  EXPECT_THAT(analysis_page(example()), HasSubstr("heads 1 and 2: "));
}

TEST(AnalysisJson, HasNullWithoutAText) {
  const nlohmann::ordered_json json = to_json(example());
  EXPECT_TRUE(json["layers"][0]["attention_similarity"].is_null());
  EXPECT_EQ(json["layers"][0]["stacked"]["dimensions_for_90_percent"], 1);
  EXPECT_EQ(json["conversions"][0]["error"]["values"], 0.5);
  EXPECT_TRUE(json["conversions"][0]["output_change"].is_null());
  EXPECT_EQ(json["conversions"][2]["impossible"], "why");
}

}  // namespace
}  // namespace headshare
