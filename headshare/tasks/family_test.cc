#include "headshare/tasks/family.h"

#include <gmock/gmock.h>

#include <set>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/testing.h"
#include "headshare/tasks/diagnostics/diagnostic.h"
#include "headshare/tasks/idle_options.h"
#include "headshare/tasks/masked/masked_language_model.h"
#include "headshare/tasks/translation/translation_options.h"

namespace headshare {
namespace {

using testing::HasSubstr;

TaskOptions untouched(const std::string& task) {
  TaskOptions options;
  TrainOptions train;
  options.task = task;
  task_family(task).set_defaults({}, &options, &train);
  return options;
}

// Returns what check_task says once one option is set.
std::string refused(const std::string& task, const std::string& option, const std::string& value) {
  TaskOptions options = untouched(task);
  Fields list = fields(options);
  for (const TaskFamily* family : task_families()) append(&list, family->fields(options));
  set_field(list, option, value, "--" + option);
  return error_message([&] { check_task(options, untouched(task), {options}); });
}

TEST(TaskOptionsTest, ACopyHasOptionsOfItsOwn) {
  TaskOptions options;
  options.own<MaskedOptions>().pseudo_tokens = 5;
  TaskOptions copy = options;
  copy.own<MaskedOptions>().pseudo_tokens = 6;
  EXPECT_EQ(options.own<MaskedOptions>().pseudo_tokens, 5);
  const TaskOptions empty;
  EXPECT_EQ(empty.own<MaskedOptions>().pseudo_tokens, MaskedOptions().pseudo_tokens);
}

TEST(TaskFamilyTest, EncodersHaveBertsFormWhereItIsAskedFor) {
  const auto form = [](const TaskOptions& asked) {
    TaskOptions options;
    TrainOptions train;
    options.task = "mlm";
    task_family("glue").set_defaults(asked, &options, &train);  // as its encoders begin
    return std::pair(options.model.norms, options.model.positions);
  };
  EXPECT_EQ(form({}), std::pair(NormPlacement::kBefore, PositionKind::kRotary));
  TaskOptions bert;
  bert.own<MaskedOptions>().bert = true;
  EXPECT_EQ(form(bert), std::pair(NormPlacement::kAfter, PositionKind::kLearned));
}

TEST(TaskFamilyTest, EveryTaskHasOneFamilyThatSaysWhatItIs) {
  std::set<std::string> names;
  for (const TaskFamily* family : task_families()) {
    EXPECT_FALSE(family->learns().empty() || family->heading().empty());
    for (const std::string& task : family->tasks()) {
      EXPECT_TRUE(names.insert(task).second) << task;
      EXPECT_EQ(&task_family(task), family);
      check_task(untouched(task), untouched(task), {untouched(task)});
    }
  }
  EXPECT_THAT(error_message([] { task_family("ofsets"); }), HasSubstr("did you mean 'offsets'"));
}

TEST(TaskFamilyTest, TheTaskOptionListsAllTasksOrThoseThatTrainAlone) {
  TaskOptions options;
  EXPECT_EQ(trained_task_field(options).range, "language-model|mlm|three-way|translation|image");
  Field all = task_field(options);
  all.parse("SQuAD");
  EXPECT_EQ(options.task, "squad");
}

TEST(CheckScoresTest, RefusesWhatIsNotFinite) {
  const auto refusal = [](double loss) {
    return error_message([&] { check_scores({.object = {{"three_way_loss", loss}, {"tokens", 3}}, .text = {}}, "m"); });
  };
  EXPECT_EQ(refusal(0.5), "no error");
  EXPECT_THAT(refusal(std::nan("")), HasSubstr("three_way_loss of m is nan"));
  EXPECT_THAT(refusal(HUGE_VAL), HasSubstr("three_way_loss of m is inf"));
}

TEST(CheckTaskTest, RefusesOptionsOfOtherTasks) {
  EXPECT_THAT(refused("language-model", "mask-rate", "0.5"),
              HasSubstr("--mask-rate belongs to --task mlm; the task is language-model"));
  EXPECT_THAT(refused("offsets", "pairs", "4"),
              HasSubstr("--pairs belongs to --task recall or joint-recall; the task is offsets"));
  EXPECT_THAT(refused("mlm", "finetune-epochs", "9"), HasSubstr("or regress; the task is mlm"));
  EXPECT_THAT(refused("mlm", "stride", "9"), HasSubstr("--stride"));
  EXPECT_THAT(refused("dyck", "validation-fraction", "0.3"), HasSubstr("--validation-fraction is about text"));
  EXPECT_THAT(refused("dyck", "context", "33"), HasSubstr("--sequence-length"));
  EXPECT_THAT(refused("glue", "finetune-doc-stride", "9"), HasSubstr("about answers in texts"));
}

TEST(CheckTaskTest, TakesItsOwnAndThoseOfWhatItBeginsWith) {
  EXPECT_EQ(refused("recall", "pairs", "4"), "no error");
  EXPECT_EQ(refused("recall", "test-sequences", "4"), "no error");
  EXPECT_EQ(refused("glue", "mask-rate", "0.5"), "no error");
  EXPECT_EQ(refused("squad", "finetune-doc-stride", "9"), "no error");
}

// Why an option does nothing in a model of these options; "" where it is read.
std::string why_idle(const TaskOptions& options, const std::string& option) {
  for (const IdleOption& one : idle_options(options, TrainOptions())) {
    if (one.name == option) return one.why;
  }
  return "";
}

TEST(IdleOptionsTest, OptionsOfOtherSchemesDoNothing) {
  TaskOptions options = untouched("language-model");
  options.model.attention.scheme = "mqa";
  EXPECT_EQ(why_idle(options, "groups"), "matters only to the scheme gqa");
  EXPECT_EQ(why_idle(options, "layer-key-widths"), "matters only to the scheme collaborative");
  options.model.attention.scheme = "gqa";
  EXPECT_EQ(why_idle(options, "groups"), "");
}

TEST(IdleOptionsTest, RotationsAreReadByTheirKind) {
  TaskOptions options = untouched("language-model");
  options.model.positions = PositionKind::kLearned;
  for (const char* name : {"rotary-base", "rotary-dimensions", "rotary-scaling", "rotary-factor"}) {
    EXPECT_EQ(why_idle(options, name), "does nothing with --positions learned") << name;
  }
  options.model.positions = PositionKind::kRotary;
  EXPECT_EQ(why_idle(options, "rotary-scaling"), "");
  EXPECT_EQ(why_idle(options, "rotary-factor"), "does nothing with --rotary-scaling none");
  options.model.attention.rotary_scaling.kind = RotaryScalingKind::kLinear;
  EXPECT_EQ(why_idle(options, "rotary-factor"), "");
  EXPECT_EQ(why_idle(options, "rotary-truncate"), "does nothing with --rotary-scaling linear");
  for (const char* name : {"global-every", "global-first", "local-rotary-base"}) {
    EXPECT_EQ(why_idle(options, name), "is about --local-window, which is not set") << name;
  }
  options.model.attention.window = 4;
  EXPECT_EQ(why_idle(options, "global-every"), "");
  EXPECT_EQ(why_idle(options, "local-rotary-base"), "");
  EXPECT_EQ(why_idle(options, "global-first"), "is about --global-every, which is not set");
}

TEST(IdleOptionsTest, OneSiteOfATranslatorIsEnough) {
  TaskOptions options = untouched("translation");
  EXPECT_NE(why_idle(options, "groups"), "");
  options.own<TranslationTaskOptions>().model.cross_scheme = "gqa";
  EXPECT_EQ(why_idle(options, "groups"), "");
}

// A name that a scheme's record misspells would never be refused.
TEST(IdleOptionsTest, SchemesReadOptionsThatModelsHave) {
  TransformerOptions model;
  Fields list = fields(model);
  for (const auto& scheme : scheme_records()) {
    for (const std::string& name : scheme->reads) EXPECT_NE(find_field(list, name), nullptr) << scheme->name << name;
  }
}

TEST(CheckTaskTest, RefusesDifficultiesThatCannotBeMet) {
  TaskOptions options = untouched("recall");
  options.own<DiagnosticOptions>().pairs = 1000;
  EXPECT_THAT(error_message([&] { check_task(options, untouched("recall"), {options}); }), HasSubstr("--pairs"));
}

}  // namespace
}  // namespace headshare
