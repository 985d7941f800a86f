// This file adds the formula of lrkv to the tests.
#include <gmock/gmock.h>

#include <cmath>

#include "headshare/attention/testing.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Returns head h of keys or values: what all heads share, and a product of rank r.
Tensor with_residual(const NaiveLayer& layer, const std::string& name, int64_t h, const Tensor& y) {
  const Tensor B = layer.parameter(name + "_residual")[h];  // [r, D]
  const Tensor kept = layer.affine(name, y);                // [S, D + H r]
  const int64_t first = B.size(1) + h * B.size(0);
  return kept.slice(1, 0, B.size(1)) + kept.slice(1, first, first + B.size(0)).matmul(B);
}

NaiveHead lrkv_head(const NaiveLayer& layer, int64_t h, const Tensor& x, const Tensor& y) {
  return {layer.query(layer.own("query", h, x)), layer.key(with_residual(layer, "key", h, y)),
          with_residual(layer, "value", h, y)};
}

AttentionOptions layer_of_rank(const std::string& rank) { return with_option(small_layer("lrkv"), "kv-rank", rank); }

const AddFormula kLrkv({.scheme = "lrkv",
                        .head = lrkv_head,
                        .cases = {{"lrkv", small_layer("lrkv")}, {"lrkv_full_rank", layer_of_rank("2")}}});

TEST(Lrkv, BothFormsGiveTheSameHeads) {
  const at::NoGradGuard no_grad;
  for (const bool rotary : {false, true}) {
    AttentionOptions options = layer_of_rank("1");
    options.rotary = rotary;
    options.projection_bias = true;
    const Attention layer = random_attention(options);
    const Scheme& scheme = layer->scheme();
    const Tensor y = random_tensor({2, 7, 6}, 61);
    const Tensor queries = scheme.project_queries(y.slice(1, 4), /*first=*/4);
    std::vector<Tensor> merged;
    for (const Form form : {Form::kManyQueries, Form::kFewQueries}) {
      const Posed posed = scheme.posed(queries, scheme.remember(y, 0), form);
      merged.push_back(scheme.merge(posed, attend(posed.problem, {.causal = true}, {}), Tensor()));
      const bool is_kept = form == Form::kFewQueries;
      EXPECT_EQ(posed.problem.value.size(1), is_kept ? 1 : 4);
      EXPECT_EQ(posed.problem.key.size(1), is_kept && !rotary ? 1 : 4) << "rotated keys have to be as wide as a head";
    }
    EXPECT_TRUE(same(merged[0], merged[1]));
  }
  const Attention layer = random_attention({.scheme = "lrkv", .d_model = 768, .heads = 12});
  EXPECT_EQ(layer->scheme().form_for(1, 512), Form::kFewQueries);
  EXPECT_EQ(layer->scheme().form_for(512, 512), Form::kManyQueries);
  EXPECT_EQ(layer->scheme().form_for(42, 512), Form::kFewQueries) << "504 queries of heads, 8 times 64 dimensions";
  EXPECT_EQ(layer->scheme().form_for(43, 512), Form::kManyQueries);
  EXPECT_EQ(make_scheme(resolve({.scheme = "lrkv", .d_model = 16, .heads = 4}))->form_for(8, 9), Form::kFewQueries)
      << "exactly 8 times";
  EXPECT_EQ(layer->scheme().form_for(2, 2), Form::kManyQueries) << "a sequence without a cache";
}

TEST(Lrkv, ResidualsStartAsLargeAsAsked) {
  const auto deviation = [](AttentionOptions options) {
    Attention layer(resolve(options));
    initialise(*layer, /*seed=*/1);
    return parameters_of(layer->scheme()).at("key_residual").std().item<double>();
  };
  AttentionOptions options = with_option({.scheme = "lrkv", .d_model = 256, .heads = 4}, "kv-rank", "16");
  EXPECT_NEAR(deviation(options), 0.5 / std::sqrt(16.0), 0.01);
  EXPECT_NEAR(deviation(with_option(options, "kv-residual-start", "2")), 2 / std::sqrt(16.0), 0.04);
  EXPECT_EQ(deviation(with_option(options, "kv-residual-start", "0")), 0) << "as mqa";
}

TEST(Lrkv, CountsItsResiduals) {
  const auto cost = [](const std::string& rank) {
    return make_scheme(resolve(with_option({.scheme = "lrkv", .d_model = 768, .heads = 12}, "kv-rank", rank)))->cost();
  };
  const int64_t E = 768, H = 12, D = 64;
  EXPECT_EQ(cost("4").parameters, 2 * E * E + 2 * (E * D + H * 4 * (E + D)));
  EXPECT_EQ(cost("4").effective, cost("4").parameters);
  EXPECT_EQ(cost("4").cache_elements, 2 * (D + H * 4));
  EXPECT_EQ(cost("64").effective, 4 * E * E) << "as mha";
  EXPECT_EQ(cost("auto").cache_elements, 2 * (D + H * 16));
}

TEST(Lrkv, ARankIsFromOneToTheFullOne) {
  const auto refused = [](const std::string& rank, int64_t width) {
    return error_message([&] {
      AttentionOptions options = layer_of_rank(rank);
      options.head_width = width;
      resolve(options);
    });
  };
  EXPECT_THAT(refused("0", 2), AllOf(HasSubstr("kv-rank"), HasSubstr("not 0")));
  EXPECT_THAT(refused("3", 2), AllOf(HasSubstr("at most 2"), HasSubstr("not 3"), HasSubstr("lower --kv-rank")));
  EXPECT_THAT(refused("7", 12), HasSubstr("at most 6, the full rank of maps from d-model 6 to head-width 12"));
}

}  // namespace
}  // namespace headshare
