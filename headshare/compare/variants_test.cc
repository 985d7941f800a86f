#include "headshare/compare/variants.h"

#include <gmock/gmock.h>

#include "headshare/compare/grid.h"
#include "headshare/compare/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names(const std::vector<Variant>& variants) {
  std::vector<std::string> made;
  for (const Variant& one : variants) made.push_back(one.name);
  return made;
}

ComparisonOptions with_named(const std::vector<std::string>& schemes, std::vector<std::string> variants) {
  ComparisonOptions options = small_diagnostic(schemes);
  options.variants = std::move(variants);
  return options;
}

TEST(GateSentenceTest, NamesTheModelsWithAGate) {
  ComparisonOptions options = with_named({"mha", "sha"}, {"gated:output-gate=element"});
  EXPECT_EQ(gate_sentence(planned_gates(with_named({"mha", "sha"}, {}))), "");
  EXPECT_EQ(
      gate_sentence(planned_gates(options)),
      "Output gates differ, and may move quality more than a scheme does: element in gated; none in mha and sha.");
  options.model.attention.gate = OutputGate::kElement;
  EXPECT_EQ(gate_sentence(planned_gates(options)), "Every model has an output gate (element).");
}

TEST(ChosenVariantsTest, SchemesInTheRegistrysOrderThenTheNamedOnes) {
  const ComparisonOptions options =
      with_named({"sha", "mha"}, {"wide:scheme=mqa", "heads=4", "rms:norm=rms", "plain:", "slow:learning-rate=1e-5"});
  const std::vector<Variant> variants = chosen_variants(options);
  EXPECT_THAT(names(variants), ElementsAre("mha", "sha", "wide", "rms", "plain", "slow"));
  EXPECT_EQ(variants[0].options, (nlohmann::json{{"scheme", "mha"}}));
  EXPECT_EQ(variants[2].scheme, "mqa");
  EXPECT_EQ(variants[2].options, (nlohmann::json{{"scheme", "mqa"}, {"heads", 4}}));
  EXPECT_EQ(variants[3].scheme, "mha");
  EXPECT_EQ(variants[4].options, nlohmann::json::object());
  const ComparisonOptions wide = with_variant(options, variants[2]);
  EXPECT_EQ(wide.model.attention.scheme, "mqa");
  EXPECT_EQ(wide.model.attention.heads, 4);
  EXPECT_EQ(with_variant(options, variants[5]).train.schedule.learning_rate, 1e-5);
}

TEST(ChosenVariantsTest, WithVariantsSchemesMayBeNone) {
  ComparisonOptions options = with_named({}, {"one:scheme=mqa"});
  EXPECT_THAT(names(chosen_variants(options)), ElementsAre("one"));
  options.peop = true;
  EXPECT_THAT(names(chosen_variants(options)), ElementsAre("sha", "one"));
  options.variants.emplace_back("single:scheme=sha");
  EXPECT_THAT(names(chosen_variants(options)), ElementsAre("one", "single"));
  options.variants.clear();
  options.peop = false;
  EXPECT_THAT(error_message([&] { chosen_variants(options); }), HasSubstr("no scheme was named"));
}

TEST(ChosenVariantsTest, RefusesWhatIsNone) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"norm=rms"}, "a name, an option and its value are wanted"},
      {{"a:norm"}, "a name, an option and its value are wanted"},
      {{"a:norm=rsm"}, "--variants a"},
      {{"a:nrom=rms"}, "norm"},
      {{"a:seed=1"}, "seed"},
      {{"a:text=x"}, "text"},
      {{"a:norm=rms", "norm=layer"}, "sets norm twice"},
      {{"a:norm=rms", "a:norm=layer"}, "--variants names a twice"},
      {{"mqa:norm=rms"}, "mqa is the name of a scheme"},
      {{"../a:norm=rms"}, "is no name for a variant"},
      {{":norm=rms"}, "is no name for a variant"},
      {{std::string(41, 'a') + ":norm=rms"}, "is no name for a variant"},
      {{"a:scheme=mqqa"}, "mqa"},
  };
  for (const auto& [variants, message] : cases) {
    EXPECT_THAT(error_message([&] { chosen_variants(with_named({"mha"}, variants)); }), HasSubstr(message))
        << variants.front();
  }
  ComparisonOptions swept = with_named({"mha"}, {"a:heads=4"});
  swept.sweep = {"heads=1", "2"};
  EXPECT_THAT(error_message([&] { chosen_variants(swept); }), HasSubstr("sets heads, which --sweep varies"));
}

TEST(TrainedTwinTest, IsTheSameBesideItsScheme) {
  const ComparisonOptions options = with_named(
      {"mha"}, {"rms:norm=rms", "lossless:scheme=el_lossless", "norm=rms", "other:scheme=el_lossless", "heads=1"});
  const std::vector<Variant> variants = chosen_variants(options);
  ASSERT_NE(trained_twin(options, variants[2], variants), nullptr);
  EXPECT_EQ(trained_twin(options, variants[2], variants)->name, "rms");
  EXPECT_EQ(trained_twin(options, variants[3], variants), nullptr);
  const auto experiment = open_experiment(options);
  EXPECT_THAT(error_message([&] { plan_cells(options, *experiment); }),
              HasSubstr("add a variant that differs from it in scheme=mha alone"));
  ComparisonOptions whole = options;
  whole.variants.resize(3);
  const std::vector<CellPlan> plans = plan_cells(whole, *experiment);
  ASSERT_EQ(plans.size(), 3u);
  EXPECT_EQ(plans[2].directory(), "lossless-seed3");
  EXPECT_EQ(plans[2].weights_of->variant, "rms");
  EXPECT_EQ(plans[1].options.model.norm, NormKind::kRms);
}

TEST(ChosenReferencesTest, AreNamedOrFoundByTheirScheme) {
  ComparisonOptions options = with_named({"mqa"}, {"a:scheme=sha", "b:norm=rms"});
  const std::vector<Variant> variants = chosen_variants(options);
  EXPECT_EQ(chosen_references(options, variants), (References{.quality = "b", .peop = "a"}));
  options.reference = options.peop_reference = "mqa";
  EXPECT_EQ(chosen_references(options, variants), (References{.quality = "mqa", .peop = "mqa"}));
  options.reference = "c";
  EXPECT_THAT(error_message([&] { chosen_references(options, variants); }), HasSubstr("compared: mqa, a and b"));
  EXPECT_EQ(chosen_references(small_diagnostic({"mqa"}), chosen_variants(small_diagnostic({"mqa"}))), References());
}

TEST(MatchParametersTest, VariantsCountWithTheirOwnOptions) {
  ComparisonOptions options = with_named({"mha"}, {"narrow:head-width=2"});
  options.match = Match::kParameters;
  const auto experiment = open_experiment(options);
  const std::vector<CellPlan> plans = plan_cells(options, *experiment);
  ASSERT_EQ(plans.size(), 2u);
  const auto total = [&](const CellPlan& plan) { return measure(experiment->model(plan.options)).total_parameters; };
  EXPECT_NEAR(static_cast<double>(total(plans[0])), static_cast<double>(total(plans[1])), 17);
  EXPECT_GT(plans[1].options.model.feed_forward_width,
            *experiment->model(plans[0].options).common().feed_forward_width);
}

}  // namespace
}  // namespace headshare
