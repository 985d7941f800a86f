#include "headshare/compare/options.h"

#include <gmock/gmock.h>

#include <set>

#include "headshare/attention/scheme_record.h"
#include "headshare/compare/fine_tuned/pre_training.h"
#include "headshare/compare/testing.h"
#include "headshare/tasks/finetune/fine_tuning_options.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ChosenSchemesTest, ShaJoinsWhenPeopIsAskedFor) {
  ComparisonOptions options;
  options.schemes = {"mha", "mhe_add"};
  options.peop = true;
  EXPECT_EQ(chosen_variants(options).size(), 3u);
}

TEST(WhyNotTest, NamesWhatAPositionKindRulesOut) {
  ComparisonOptions options = small_diagnostic({"all"});
  EXPECT_EQ(why_not(options, scheme_variant("el_shared")), "");
  options.model.positions = PositionKind::kRotary;
  EXPECT_THAT(why_not(options, scheme_variant("el_shared")), HasSubstr("rotary"));
  EXPECT_EQ(why_not(options, scheme_variant("mha")), "");
}

TEST(PresetTest, EveryPresetOfEveryTaskCanBeTrainedWithEveryScheme) {
  for (const char* task :
       {"language-model", "mlm", "offsets", "recall", "induction", "dyck", "joint-recall", "k-gram", "glue"}) {
    for (const auto& [preset, name] : preset_names()) {
      const ComparisonOptions options = preset_options(task, preset);
      // Encoders have rotary positions, which schemes that keep raw hidden states refuse.
      const bool rotary = options.model.positions == PositionKind::kRotary;
      EXPECT_EQ(rotary, task == std::string("mlm") || task == std::string("glue"));
      for (const Variant& one : chosen_variants(options)) {
        const bool raw = one.scheme.starts_with("el_");
        EXPECT_EQ(why_not(options, one).empty(), !(rotary && raw)) << task << name << one.scheme;
      }
      EXPECT_GT(options.train.steps, 0);
    }
  }
  EXPECT_GT(preset_options("language-model", Preset::kBase).own<TextOptions>().data.test_fraction, 0);
}

std::vector<std::string> names_of(const std::vector<std::string>& sweep) {
  ComparisonOptions options;
  options.sweep = sweep;
  std::vector<std::string> names;
  for (const SweepSetting& setting : sweep_settings(options)) names.push_back(setting.name());
  return names;
}

TEST(SweepTest, MakesEveryCombination) {
  EXPECT_THAT(names_of({}), ElementsAre(""));
  // The commas of the command line cut it into these items.
  EXPECT_THAT(names_of({"learning_rate=3e-4", "1e-3"}), ElementsAre("learning-rate=0.0003", "learning-rate=0.001"));
  EXPECT_THAT(names_of({"heads=2", "4", "content-bias=true", "false"}),
              ElementsAre("heads=2 content-bias=true", "heads=2 content-bias=false", "heads=4 content-bias=true",
                          "heads=4 content-bias=false"));
}

TEST(SweepTest, SetsTheOptionsOfACell) {
  ComparisonOptions options;
  options.sweep = {"lr=0.5", "heads=8"};
  const ComparisonOptions set = with_setting(options, sweep_settings(options).front());
  EXPECT_EQ(set.train.schedule.learning_rate, 0.5);
  EXPECT_EQ(set.model.attention.heads, 8);
}

TEST(SweepTest, RefusesWhatCannotVary) {
  EXPECT_THAT(error_message([] { names_of({"3e-4"}); }), HasSubstr("--sweep learning-rate=3e-4,1e-3"));
  EXPECT_THAT(error_message([] { names_of({"learning_rat=1"}); }), HasSubstr("learning-rate"));
  EXPECT_THAT(error_message([] { names_of({"learning-rate=fast"}); }), HasSubstr("fast"));
  EXPECT_THAT(error_message([] { names_of({"lr=1e-3", "0.001"}); }), AllOf(HasSubstr("0.001"), HasSubstr("twice")));
  for (const char* fixed : {"seed=1", "scheme=mha", "validation-fraction=0.1", "pairs=2"}) {
    EXPECT_THAT(error_message([&] { names_of({fixed}); }), HasSubstr("--sweep")) << fixed;
  }
}

TEST(FineTuningOptionsTest, PreTrainingIsAComparisonOfEncoders) {
  ComparisonOptions options = preset_options("glue", Preset::kSmall);
  options.schemes = {"el_lossless", "mha", "sha"};
  options.seeds = 5;
  options.own<BenchmarkOptions>().tasks = {"cola"};
  const ComparisonOptions encoders = pre_training(options);
  EXPECT_EQ(encoders.task, "mlm");
  EXPECT_EQ(encoders.seeds, 5);
  EXPECT_THAT(encoders.schemes, ElementsAre("mha", "sha"));
  // It differs from a comparison of masked language models in nothing else.
  ComparisonOptions given = encoders;
  ComparisonOptions plain = preset_options("mlm", Preset::kSmall);
  plain.schemes = given.schemes;
  plain.seeds = 5;
  EXPECT_EQ(to_json(fields(given)), to_json(fields(plain)));
  options.own<BenchmarkOptions>().encoder_seeds = 1;
  EXPECT_EQ(pre_training(options).seeds, 1);
}

TEST(FineTuningOptionsTest, NamesAreTheirOwn) {
  ComparisonOptions options;
  std::set<std::string> names;
  for (const Field& one : fields(options)) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    for (const std::string& alias : one.aliases) EXPECT_TRUE(names.insert(alias).second) << alias;
  }
}

}  // namespace
}  // namespace headshare
