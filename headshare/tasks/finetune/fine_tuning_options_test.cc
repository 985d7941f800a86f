#include "headshare/tasks/finetune/fine_tuning_options.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(FineTuningTaskTest, EverySuiteTaskAndTableIsAJob) {
  for (const FineTuningTask& one : fine_tuning_tasks()) {
    TaskOptions options;
    options.task = one.name;
    EXPECT_EQ(fine_tuning_jobs(options).size() > 1, one.data == DataLayout::kSuite) << one.name;
    EXPECT_FALSE(one.sentence.empty());
  }
}

TEST(FineTuningOptionsTest, JobsOfASuite) {
  TaskOptions options;
  options.task = "superglue";
  EXPECT_EQ(fine_tuning_jobs(options).size(), 8u);
  options.own<BenchmarkOptions>().tasks = {"RTE", "superglue/wic"};
  EXPECT_THAT(fine_tuning_jobs(options), ElementsAre("superglue/rte", "superglue/wic"));
  options.own<BenchmarkOptions>().tasks = {"cola"};
  EXPECT_THAT(error_message([&] { fine_tuning_jobs(options); }), HasSubstr("cola"));
  options = TaskOptions();
  options.task = "squad";
  EXPECT_THAT(fine_tuning_jobs(options), ElementsAre("squad"));
}

TEST(FineTuningOptionsTest, LearningRatesAreAboveZeroAndDiffer) {
  const auto refusal = [](const std::string& rates) {
    BenchmarkOptions options;
    Fields list = fields(options);
    set_field(list, "finetune-learning-rate", rates, "test");
    return error_message([&] { check_learning_rates(options.tuning); });
  };
  EXPECT_EQ(refusal("1e-5,2e-5"), "no error");
  EXPECT_EQ(refusal(""), "--learning-rate is empty");
  EXPECT_EQ(refusal("1e-5,0"), "--learning-rate 0 is not a number above 0");
  EXPECT_EQ(refusal("1e-5,0.00001"), "--learning-rate has 0.00001 twice");
}

TEST(FineTuningOptionsTest, ErrorsNameTheOptionsOfThisCommand) {
  EXPECT_EQ(in_fine_tuning_words("hold a part back with --validation-fraction, or --layers 2; --"),
            "hold a part back with --finetune-validation-fraction, or --layers 2; --");
}

}  // namespace
}  // namespace headshare
