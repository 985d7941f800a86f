// This test adds a scheme with an option and a conversion of its own, from its formula to the report. The scheme exists
// only here and shows what adding one takes.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <set>

#include "headshare/attention/schemes.h"
#include "headshare/base/json/json_input.h"
#include "headshare/compare/cell_run.h"
#include "headshare/compare/comparison.h"
#include "headshare/compare/testing.h"
#include "headshare/convert/shared_heads/conversion_record.h"
#include "headshare/convert/shared_heads/shared_heads_model.h"
#include "headshare/convert/shared_heads/sharing_problem.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/testing.h"
#include "headshare/report/html/html_figures.h"
#include "headshare/report/html/html_report.h"

namespace headshare {
namespace {

using testing::HasSubstr;

constexpr int64_t kRank = 3;
constexpr int64_t kLowRankVersion = kModelFormatVersion;

struct LowRankOptions {
  std::optional<int64_t> rank = {};  // r; default kRank
};

Fields low_rank_fields(LowRankOptions& o) {
  return {field("low-rank", &o.rank, "width of low_rank's memory", {.min = 1, .since = kLowRankVersion})};
}

int64_t rank_of(const AttentionOptions& options) { return *options.own.get<LowRankOptions>().rank; }

// LowRank makes the keys and values of each head from one narrow map of the memory, and caches only that map.
//   q_h = x W_Q^h, l = y W_L [r wide], k_h = l W_K^h, v_h = l W_V^h; cache: l: r per token
class LowRank : public Scheme {
 public:
  explicit LowRank(const AttentionOptions& options)
      : Scheme(options),
        query_(projection("query", H() * D())),
        rank_(rank_of(options)),
        narrow_(projection("narrow", rank_)),
        key_(declare("key", {H() * D(), rank_}, Init::normal(0.5), Decay::kYes)),
        value_(declare("value", {H() * D(), rank_}, Init::normal(0.5), Decay::kYes)),
        output_(output_projection()) {}

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    return rotated(split_heads(query_->forward(x), H()), first);
  }
  Tensor merge(const Posed&, const Tensor& heads, const Tensor&) const override {
    return output_->forward(join_heads(heads));
  }

 protected:
  Memory project_memory(const Tensor& y, int64_t) const override { return {split_heads(narrow_->forward(y), 1)}; }
  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override {
    const Tensor narrow = join_heads(memory[0]);
    return {.heads = H(),
            .query = queries,
            .key = rotated(split_heads(linear_map(narrow, key_), H()), /*first=*/0),
            .value = split_heads(linear_map(narrow, value_), H())};
  }
  AttentionCost own_cost() const override {
    const int64_t parameters = 2 * E() * H() * D() + rank_ * (E() + 2 * H() * D());
    return {.parameters = parameters, .effective = parameters, .cache_elements = rank_};
  }

 private:
  Linear query_;
  int64_t rank_;
  Linear narrow_;
  Tensor key_, value_;
  Linear output_;
};

void set_low_rank_defaults(AttentionOptions* options) {
  std::optional<int64_t>& rank = options->own.get<LowRankOptions>().rank;
  if (!rank) rank = kRank;
}

SchemeRecord low_rank() {
  return {.name = "low_rank",
          .sentence = "all heads read one narrow memory",
          .paper = "nobody's",
          .make = make_as<LowRank>,
          .options = scheme_options<LowRankOptions>(low_rank_fields),
          .set_defaults = set_low_rank_defaults,
          .since = kLowRankVersion};
}

// Puts the maps of all heads side by side, [E, 2 H D], and cuts them off to the rank by a singular value decomposition.
void fill_low_rank(const SharingProblem& problem, const SharingTask&, SchemeFiller* filler) {
  const HeadMaps& maps = problem.maps();
  const int64_t r = rank_of(problem.target());
  const Tensor all = at::cat({maps.key, maps.value}).transpose(0, 1).flatten(1);
  const auto [left, sizes, right] = at::linalg_svd(all, /*full_matrices=*/false);
  const Tensor maps_of_heads = (sizes.unsqueeze(1) * right).slice(0, 0, r).t();  // [2 H D, r]
  filler->set("query.weight", maps.query.transpose(1, 2));
  filler->set("narrow.weight", left.slice(1, 0, r).t());
  filler->set("key", maps_of_heads.slice(0, 0, all.size(1) / 2));
  filler->set("value", maps_of_heads.slice(0, all.size(1) / 2));
  filler->set("output.weight", maps.output.flatten(0, 1).t());
}

ConversionRecord low_rank_conversion() {
  return {.scheme = "low_rank",
          .fill = fill_low_rank,
          .size = ConversionSize{
              .name = "rank",
              .what = "rank",
              .value = [](const AttentionOptions& o) { return o.own.get<LowRankOptions>().rank; },
              .set = [](int64_t rank, AttentionOptions* target) { target->own.get<LowRankOptions>().rank = rank; },
              .worth_trying = [](const AttentionOptions& o) { return std::vector<int64_t>{o.d_model / 2}; }}};
}

class AddedSchemeTest : public testing::Test {
 protected:
  Results compare(const std::vector<std::string>& schemes, const std::vector<std::string>& sweep = {}) {
    ComparisonOptions options = small_text(schemes, home_.path());
    options.sweep = sweep;
    const auto experiment = open_experiment(options);
    Observer silent;
    Results results{.subject = experiment->subject(), .match = "steps", .command = "a test"};
    for (const CellPlan& plan : plan_cells(options, *experiment)) {
      results.planned.push_back(plan.key);
      // The process of a cell reads its options in this way.
      const CellPlan read = plan_from_json(to_json(plan), "plan.json");
      results.cells.push_back(run_cell(read, *experiment, place_in(home_.path(), read), at::kCPU, silent, kNeverStop));
    }
    return results;
  }

  const AddedScheme added_{low_rank()};
  const TemporaryDirectory home_;
};

TEST_F(AddedSchemeTest, IsComparedLikeAnyOther) {
  const Results results = compare({"all"});
  ASSERT_EQ(results.cells.size(), scheme_names().size());
  const Cell& cell = results.cells.at(results.cells.size() - 2);  // el_lossless, which is not trained, comes last
  EXPECT_EQ(cell.key.variant, "low_rank");
  EXPECT_EQ(cell.size.cache_elements_per_token, kRank);
  EXPECT_EQ(cell.weights_of, "");
  EXPECT_GT(cell.decoding_tokens_per_second, 0);
  EXPECT_LT(cell.test_loss, results.cells.front().test_loss + 1);
  EXPECT_THAT(html_report({results}), HasSubstr("low_rank"));
}

TEST_F(AddedSchemeTest, ItsOptionIsSweptLikeAnyOther) {
  const Results results = compare({"low_rank"}, {"low-rank=2", "5"});
  ASSERT_EQ(results.cells.size(), 2U);
  EXPECT_EQ(results.cells[0].size.cache_elements_per_token, 2);
  EXPECT_EQ(results.cells[1].size.cache_elements_per_token, 5);
  EXPECT_NE(results.cells[0].test_loss, results.cells[1].test_loss);
}

TEST_F(AddedSchemeTest, OnlyItsOwnModelsNeedItsFormatVersion) {
  const auto config_of = [&](const std::string& scheme) {
    const Decoder model = small_decoder(small_options(scheme));
    save_model(home_.path() / scheme, model, nullptr);
    EXPECT_EQ(load_decoder(home_.path() / scheme)->options().attention.scheme, scheme);
    return read_json_file(home_.path() / scheme / "config.json", 1 << 20);
  };
  const nlohmann::json own = config_of("low_rank");
  EXPECT_EQ(own.at("format_version"), kLowRankVersion);
  EXPECT_EQ(own.at("model").at("low-rank"), kRank);
  const nlohmann::json other = config_of("mha");
  EXPECT_EQ(other.at("format_version"), 1);
  EXPECT_FALSE(other.at("model").contains("low-rank"));
}

TEST_F(AddedSchemeTest, TrainedLayersBecomeItsLayers) {
  const AddedConversion conversion(low_rank_conversion());
  const Decoder source = small_decoder(small_options("mha"));
  const auto converted = [&](const SharedScheme& to) {
    SharedHeadsReport report;
    const Decoder target = to_shared(source, {.to = to}, nullptr, &report);
    EXPECT_EQ(target->options().attention.scheme, "low_rank");
    EXPECT_EQ(rank_of(target->options().attention), to.size.value_or(kRank));
    return report.layers.front().result.error;
  };
  EXPECT_LT(converted({"low_rank", 16}).scores, 1e-5);  // as wide as the model: nothing is lost
  EXPECT_GT(converted({"low_rank", 4}).values, 0.1);
  EXPECT_GT(converted({"low_rank"}).values, converted({"low_rank", 4}).values);
}

TEST_F(AddedSchemeTest, OptionsNameItAndRefuseWhatIsNotThere) {
  AttentionOptions options;
  Field field = scheme_field(&options.scheme, "");
  EXPECT_THAT(field.range, HasSubstr("|low_rank"));
  field.parse("low-rank");
  EXPECT_EQ(options.scheme, "low_rank");
  EXPECT_THAT(error_message([] { scheme_record("low_rnak"); }), HasSubstr("did you mean 'low_rank'?"));
}

TEST_F(AddedSchemeTest, NoTwoSchemesLookTheSame) {
  std::vector<VariantRow> rows;
  for (const std::string& name : scheme_names()) rows.push_back({.variant = name, .scheme = name});
  rows.push_back({.variant = "somebody_elses", .scheme = "mha"});
  const Results results;
  const ReportView view{results, rows, "a"};
  std::set<std::string> keys;
  for (const VariantRow& row : rows) keys.insert(SvgPlot::key(view.style(row.variant)));
  EXPECT_EQ(keys.size(), rows.size());
}

TEST(SchemeRecordTest, EverySchemeSaysWhatItIsAndWhoseItIs) {
  EXPECT_THAT(scheme_names(), testing::Not(testing::Contains("low_rank")));
  for (const auto& one : scheme_records()) {
    EXPECT_FALSE(one->sentence.empty() || one->paper.empty()) << one->name;
    EXPECT_TRUE(one->weights_of.empty() || is_trained(one->weights_of)) << one->name;
    EXPECT_EQ(&scheme_record(one->name), one.get());
  }
}

}  // namespace
}  // namespace headshare
