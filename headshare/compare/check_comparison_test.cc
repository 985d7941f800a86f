#include "headshare/compare/check_comparison.h"

#include <gmock/gmock.h>

#include "headshare/compare/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

// Returns the Error about these options on top of the task's own, or "no error".
std::string judgement(const std::string& task, const std::vector<std::pair<std::string, std::string>>& settings) {
  ComparisonOptions options = preset_options(task, Preset::kQuick);
  Fields known = fields(options);
  for (const auto& [name, text] : settings) set_field(known, name, text, "test");
  return error_message([&] { check_comparison(options); });
}

TEST(CheckComparisonTest, OptionsOfAnotherTaskAreRefused) {
  struct Case {
    std::string task, option, value;
    std::vector<std::string> says;
  };
  for (const Case& one :
       {Case{"offsets", "pairs", "3", {"--pairs", "recall", "offsets"}},
        Case{"language-model", "pairs", "3", {"--pairs", "recall", "language-model"}},
        Case{"dyck", "text", "book.txt", {"--text", "dyck"}}, Case{"dyck", "stride", "3", {"--stride", "dyck"}},
        Case{"dyck", "evaluation-tokens", "99", {"--evaluation-tokens", "dyck"}},
        Case{"dyck", "context", "77", {"--context", "--sequence-length"}},
        Case{"mlm", "stride", "3", {"--stride", "mlm"}}, Case{"offsets", "offsets", "1,64", {"64"}},
        Case{"language-model", "sweep", "pairs=1,2", {"--sweep", "pairs"}},
        Case{"language-model", "scheme-steps", "mha=3", {"--match time"}}}) {
    for (const std::string& said : one.says) {
      EXPECT_THAT(judgement(one.task, {{one.option, one.value}}), HasSubstr(said)) << one.task << " " << one.option;
    }
  }
}

TEST(CheckComparisonTest, OptionsOfMaskedModelsAreTheirOwn) {
  const std::vector<std::pair<std::string, std::string>> options = {
      {"mask-rate", "0.3"}, {"whole-words", "true"}, {"norms", "pre"}, {"segments", "0"}, {"pseudo-tokens", "7"}};
  for (const auto& one : options) {
    for (const char* task : {"language-model", "offsets"}) {
      EXPECT_THAT(judgement(task, {one}), HasSubstr("--" + one.first + " belongs to --task mlm")) << task;
    }
    EXPECT_EQ(judgement("mlm", {one}), "no error") << one.first;
  }
}

}  // namespace
}  // namespace headshare
