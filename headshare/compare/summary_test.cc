#include "headshare/compare/summary.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

// 2 layers, width 16, 4 heads of 4.
ComparisonOptions options() {
  ComparisonOptions options;
  options.language.model = {.context = 8, .layers = 2};
  options.language.model.attention = {.d_model = 16, .heads = 4};
  return options;
}

constexpr int64_t kMhaParameters = 2 * 4 * 16 * 16;             // Q, K, V, O
constexpr int64_t kShaParameters = 2 * (3 * 16 * 4 + 16 * 16);  // one head of each, O
constexpr double kGrowth = static_cast<double>(kMhaParameters) / kShaParameters - 1;

Cell cell(SchemeKind scheme, int64_t seed, double perplexity) {
  return {.scheme = scheme,
          .seed = seed,
          .training = {.tokens_per_second = 100 + static_cast<double>(seed)},
          .test_loss = perplexity / 10,
          .perplexity = perplexity,
          .bits_per_byte = perplexity / 100};
}

TEST(SummariseTest, RatiosByHandForOneSeed) {
  const std::vector<SchemeSummary> rows = summarise(
      options(), {cell(SchemeKind::kMha, 0, 10), cell(SchemeKind::kSha, 0, 12), cell(SchemeKind::kElLossless, 0, 10)},
      256);
  ASSERT_EQ(rows.size(), 3u);
  const SchemeSummary& mha = rows[0];
  const SchemeSummary& sha = rows[1];
  const SchemeSummary& el = rows[2];
  EXPECT_EQ(mha.size.attention_parameters, kMhaParameters);
  EXPECT_EQ(sha.size.attention_parameters, kShaParameters);
  EXPECT_DOUBLE_EQ(*mha.prr.value, 100);
  EXPECT_DOUBLE_EQ(*sha.prr.value, 100 * (2 - 1.2));
  EXPECT_DOUBLE_EQ(*mha.peop.value, (1 - 10.0 / 12) / kGrowth);
  EXPECT_FALSE(sha.peop.value);
  EXPECT_THAT(sha.peop.reason_undefined, HasSubstr("reference"));
  EXPECT_FALSE(mha.prr.interval);
  EXPECT_FALSE(mha.loss_against_mha);
  EXPECT_DOUBLE_EQ(sha.loss_against_mha->mean, 0.2);
  EXPECT_FALSE(sha.loss_against_mha->interval);
  EXPECT_EQ(mha.tokens_per_second, 100);

  // The quality of mha, another cache, not trained.
  EXPECT_EQ(el.perplexity.mean, mha.perplexity.mean);
  EXPECT_EQ(*el.prr.value, 100);
  EXPECT_EQ(*el.peop.value, *mha.peop.value);
  EXPECT_EQ(el.loss_against_mha->mean, 0);
  EXPECT_EQ(el.tokens_per_second, 0);
  EXPECT_EQ(el.size.attention_parameters, kMhaParameters);
  EXPECT_EQ(el.size.cache_elements_per_token, 16);
  EXPECT_EQ(mha.size.cache_elements_per_token, 32);
}

TEST(SummariseTest, SeedsArePaired) {
  const std::vector<SchemeSummary> rows = summarise(options(),
                                                    {cell(SchemeKind::kMha, 0, 10), cell(SchemeKind::kSha, 0, 12),
                                                     cell(SchemeKind::kMha, 1, 10.5), cell(SchemeKind::kSha, 1, 13)},
                                                    256);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].scheme, SchemeKind::kMha);
  EXPECT_EQ(rows[0].perplexity.count, 2);
  EXPECT_EQ(rows[0].perplexity.mean, 10.25);
  EXPECT_DOUBLE_EQ(*rows[0].perplexity.deviation, std::sqrt(0.125));
  EXPECT_DOUBLE_EQ(*rows[1].prr.value, 100 * (2 - 12.5 / 10.25));  // of the means
  EXPECT_TRUE(rows[0].prr.interval);
  EXPECT_DOUBLE_EQ(*rows[0].peop.value, (1 - 10.25 / 12.5) / kGrowth);
  EXPECT_DOUBLE_EQ(rows[1].loss_against_mha->mean, 0.225);  // 0.2 and 0.25
  EXPECT_TRUE(rows[1].loss_against_mha->interval);
  EXPECT_EQ(rows[1].tokens_per_second, 100.5);
}

TEST(SummariseTest, SaysWhatARatioLacks) {
  const std::vector<SchemeSummary> rows = summarise(options(), {cell(SchemeKind::kMqa, 0, 11)}, 256);
  EXPECT_FALSE(rows[0].prr.value);
  EXPECT_THAT(rows[0].prr.reason_undefined, HasSubstr("needs mha"));
  EXPECT_THAT(rows[0].peop.reason_undefined, HasSubstr("needs sha"));
  EXPECT_FALSE(rows[0].loss_against_mha);
}

TEST(ResultsTest, HoldsRowsCellsOptionsAndEnvironment) {
  std::vector<Cell> cells = {cell(SchemeKind::kMha, 0, 10), cell(SchemeKind::kSha, 0, 12)};
  cells[1].bits_per_byte.reset();
  const ComparisonOptions chosen = options();
  const nlohmann::json results = results_json(chosen, cells, summarise(chosen, cells, 256), {{"cores", 2}});
  EXPECT_EQ(results.at("format"), "headshare comparison");
  EXPECT_EQ(results.at("format_version"), kResultsFormatVersion);
  EXPECT_EQ(results.at("environment").at("cores"), 2);
  EXPECT_EQ(results.at("options").at("d-model"), 16);
  ASSERT_EQ(results.at("rows").size(), 2u);
  const nlohmann::json& mha = results.at("rows")[0];
  const nlohmann::json& sha = results.at("rows")[1];
  EXPECT_EQ(mha.at("scheme"), "mha");
  EXPECT_EQ(mha.at("trained"), true);
  EXPECT_EQ(mha.at("perplexity").at("mean"), 10);
  EXPECT_TRUE(mha.at("perplexity").at("deviation").is_null());
  EXPECT_FALSE(mha.contains("test_loss_minus_mha"));
  EXPECT_TRUE(sha.at("bits_per_byte").is_null());
  EXPECT_TRUE(sha.at("peop").at("value").is_null());
  EXPECT_FALSE(sha.at("peop").at("reason_undefined").get<std::string>().empty());
  EXPECT_THAT(sha.at("prr").at("rule").get<std::string>(), HasSubstr("PRR = "));
  EXPECT_NEAR(sha.at("test_loss_minus_mha").at("mean").get<double>(), 0.2, 1e-12);
  EXPECT_EQ(results.at("cells").size(), 2u);
  EXPECT_EQ(cell_from_json(results.at("cells")[0], "x").perplexity, 10);
}

}  // namespace
}  // namespace headshare
