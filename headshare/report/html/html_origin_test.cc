#include "headshare/report/html/html_origin.h"

#include <gmock/gmock.h>

#include "headshare/report/results/results_cases.h"
#include "headshare/report/statistics/option_names.h"

namespace headshare {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

TEST(OptionNamesTest, AreWords) {
  EXPECT_EQ(option_name("learning-rate"), "learning rate");
  EXPECT_EQ(option_name("memory_bytes"), "memory bytes");
  EXPECT_EQ(option_name("d-model"), "model width");
  EXPECT_EQ(option_name("mhe-mul-offset"), "MHE mul offset");
  EXPECT_EQ(option_name("feed-forward"), "feed-forward");
  EXPECT_EQ(option_name("feed-forward-width"), "feed-forward width");
  EXPECT_EQ(option_name("feed-forward-bias"), "feed-forward bias");
  EXPECT_EQ(option_name("cache-dir"), "cache directory");
  EXPECT_EQ(option_name("bert"), "BERT");
  EXPECT_EQ(option_name("finetune-warmup-ratio"), "fine-tuning warm-up ratio");
  EXPECT_EQ(option_name(""), "");
}

TEST(OptionNamesTest, ValuesAreWordsToo) {
  EXPECT_EQ(option_value(true), "yes");
  EXPECT_EQ(option_value(0.002), "0.002");
  EXPECT_EQ(option_value(""), "not set");
  EXPECT_EQ(option_value(nullptr), "not set");
  EXPECT_EQ(option_value(nlohmann::json::array()), "none");
  EXPECT_EQ(option_value({"mha", "mqa"}), "mha, mqa");
  EXPECT_EQ(option_value({{"d-model", 4}, {"norms", "pre"}}), "model width 4, norms pre");
}

TEST(OptionNamesTest, SettingsOfASweep) {
  EXPECT_EQ(setting_text("learning-rate=0.001 d-model=4"), "learning rate 0.001, model width 4");
  EXPECT_EQ(setting_text(""), "");
  EXPECT_THAT(setting_options("a b"), ElementsAre(Pair("setting", "a b")));
}

TEST(OriginTest, IsToldInSentences) {
  Results results = loss_results({});
  results.environment = {{"headshare", "0.1.0"},
                         {"commit", "abc-dirty"},
                         {"torch", "2.13.0"},
                         {"processor", "Example <9>"},
                         {"cores", 2},
                         {"threads", 1},
                         {"memory_bytes", 1 << 30},
                         {"cuda_devices", 0},
                         {"new_key", 3},
                         {"attention_backends",
                          {{{"name", "blocked"}, {"summary", "in blocks"}}, {{"name", "sdpa"}, {"summary", "fused"}}}}};
  results.options = {{"d-model", 96}, {"shared-qk", false}};
  const std::string made = origin_html(results);
  EXPECT_THAT(made, HasSubstr("This command made it:"));
  EXPECT_THAT(made,
              HasSubstr("It ran headshare 0.1.0 (commit abc with changes that were not committed) with libtorch "
                        "2.13.0. The machine: Example &lt;9&gt;, 2 cores, 1 thread, 1.0 GiB of memory and no GPU."));
  EXPECT_THAT(made, HasSubstr("<dt>New key</dt><dd>3</dd>"));
  EXPECT_THAT(made, HasSubstr("<summary>Attention backends</summary>"));
  EXPECT_THAT(made, HasSubstr("<dt>Blocked</dt><dd>in blocks</dd>"));
  EXPECT_THAT(made, HasSubstr("<dt>SDPA</dt><dd>fused</dd>"));
  EXPECT_THAT(made, AllOf(HasSubstr("<dt>Model width</dt><dd>96</dd>"), Not(HasSubstr("d-model"))));
  EXPECT_THAT(made, AllOf(Not(HasSubstr("memory_bytes")), Not(HasSubstr("attention_backends"))));
}

TEST(OriginTest, MergedRunsHaveAnEnvironmentEach) {
  Results results = loss_results({});
  results.command = "one\ntwo";
  results.environment = {{"runs/a", {{"cores", 2}}}, {"runs/b", {{"cores", 4}}}};
  const std::string made = origin_html(results);
  EXPECT_THAT(made, HasSubstr("These commands made it:"));
  EXPECT_THAT(made, HasSubstr("<h4>Run runs/a</h4>\n<p>The machine: 2 cores."));
  EXPECT_THAT(made, HasSubstr("<h4>Run runs/b</h4>\n<p>The machine: 4 cores."));
  EXPECT_THAT(origin_html(Results{}), Not(HasSubstr("<p>")));
}

}  // namespace
}  // namespace headshare
