// A scheme that exists only here, from its formula to the report: what adding one takes.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <set>

#include "headshare/attention/schemes.h"
#include "headshare/compare/cell_run.h"
#include "headshare/compare/comparison.h"
#include "headshare/compare/testing.h"
#include "headshare/report/html/html_figures.h"
#include "headshare/report/html/html_report.h"

namespace headshare {
namespace {

using testing::HasSubstr;

constexpr int64_t kRank = 3;

// Keys and values of each head from one narrow map of the memory, the whole of what is cached.
//   q_h = x W_Q^h, l = y W_L [kRank wide], k_h = l W_K^h, v_h = l W_V^h; cache: l: kRank per token
class LowRank : public Scheme {
 public:
  explicit LowRank(const AttentionOptions& options)
      : Scheme(options),
        query_(projection("query", H() * D())),
        narrow_(projection("narrow", kRank)),
        key_(declare("key", {H() * D(), kRank}, Init::normal(0.5), Decay::kYes)),
        value_(declare("value", {H() * D(), kRank}, Init::normal(0.5), Decay::kYes)),
        output_(output_projection()) {}

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    return rotated(split_heads(query_->forward(x), H()), first);
  }
  Tensor merge(const Tensor& heads, const Tensor&) const override { return output_->forward(join_heads(heads)); }

 protected:
  Memory project_memory(const Tensor& y, int64_t) const override { return {split_heads(narrow_->forward(y), 1)}; }
  HeadProblem pose(const Tensor& queries, const Memory& memory) const override {
    const Tensor narrow = join_heads(memory[0]);
    return {.heads = H(),
            .query = queries,
            .key = rotated(split_heads(linear_map(narrow, key_), H()), /*first=*/0),
            .value = split_heads(linear_map(narrow, value_), H())};
  }
  AttentionCost own_cost() const override {
    const int64_t parameters = 2 * E() * H() * D() + kRank * (E() + 2 * H() * D());
    return {.parameters = parameters, .effective = parameters, .cache_elements = kRank};
  }

 private:
  Linear query_, narrow_;
  Tensor key_, value_;
  Linear output_;
};

SchemeRecord low_rank() {
  return {.name = "low_rank",
          .sentence = "all heads read one narrow memory",
          .paper = "nobody's",
          .make = make_as<LowRank>};
}

class AddedSchemeTest : public testing::Test {
 protected:
  Results compare(const std::vector<std::string>& schemes) {
    const ComparisonOptions options = small_text(schemes, home_.path());
    const auto experiment = open_experiment(options);
    Observer silent;
    Results results{.subject = experiment->subject(), .match = "steps", .command = "a test"};
    for (const CellPlan& plan : plan_cells(options, *experiment)) {
      results.planned.push_back(plan.key);
      results.cells.push_back(run_cell(plan, *experiment, home_.path(), at::kCPU, silent, kNeverStop));
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
  EXPECT_FALSE(std::any_of(scheme_records().begin(), scheme_records().end(),
                           [](const SchemeRecord& one) { return one.name == "low_rank"; }));
  for (const SchemeRecord& one : scheme_records()) {
    EXPECT_FALSE(one.sentence.empty() || one.paper.empty()) << one.name;
    EXPECT_TRUE(one.weights_of.empty() || is_trained(one.weights_of)) << one.name;
    EXPECT_EQ(&scheme_record(one.name), &one);
  }
}

}  // namespace
}  // namespace headshare
