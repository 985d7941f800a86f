// This file adds the formulas of shared_query to the tests.
#include "headshare/attention/schemes/shared_query.h"

#include <gmock/gmock.h>

#include "headshare/attention/testing.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

AttentionOptions layer_with_map(const std::string& map) {
  return with_option(small_layer("shared_query"), "query-map", map);
}

// Returns the matrix [D, D] that a head of the layer multiplies the shared query by, as a row.
Tensor matrix_of(const NaiveLayer& layer, int64_t h) {
  const auto& own = layer.options().own.get<SharedQueryOptions>();
  const int64_t D = *layer.options().head_width, half = D / 2;
  const Tensor map = layer.has("query_map") ? layer.parameter("query_map") : Tensor();
  Tensor matrix = at::eye(D, at::kDouble);
  if (own.map == QueryMap::kDiagonal) matrix = matrix + map[h].diag();
  if (own.map == QueryMap::kLowRank) {
    const int64_t r = *own.rank;
    matrix = matrix + layer.parameter("query_inner.weight").slice(0, h * r, (h + 1) * r).t().matmul(map[h]);
  }
  for (int64_t i = 0; i < half; ++i) {
    if (own.map == QueryMap::kComplex) {
      matrix[i][i] = matrix[half + i][half + i] = map[h][i];
      matrix[half + i][i] = -map[h][half + i];
      matrix[i][half + i] = map[h][half + i];
    }
    if (own.map == QueryMap::kBlocks) {
      matrix[i][i] = map[h][0][i], matrix[half + i][i] = map[h][0][half + i];
      matrix[i][half + i] = map[h][1][i], matrix[half + i][half + i] = map[h][1][half + i];
    }
  }
  return own.map == QueryMap::kFull ? map.slice(0, h * D, (h + 1) * D).t() : matrix;
}

NaiveHead shared_query_head(const NaiveLayer& layer, int64_t h, const Tensor& x, const Tensor& y) {
  Tensor query = layer.query(layer.affine("query", x)).matmul(matrix_of(layer, h).to(x.scalar_type()));
  if (layer.options().own.get<SharedQueryOptions>().map == QueryMap::kBias) {
    query = query + layer.parameter("query_map")[h];
  }
  return {query, layer.key(layer.affine("key", y)), layer.affine("value", y)};
}

// Heads of width 4 have two pairs.
AttentionOptions wide_layer(const std::string& map) {
  AttentionOptions options = layer_with_map(map);
  options.head_width = 4;
  return options;
}

const AddFormula kSharedQuery({.scheme = "shared_query",
                               .head = shared_query_head,
                               .cases = {{"shared_query", layer_with_map("full")},
                                         {"shared_query_identity", layer_with_map("identity")},
                                         {"shared_query_bias", layer_with_map("bias")},
                                         {"shared_query_diagonal", layer_with_map("diagonal")},
                                         {"shared_query_complex", wide_layer("complex")},
                                         {"shared_query_blocks", wide_layer("blocks")},
                                         {"shared_query_low_rank", wide_layer("low_rank")}}});

TEST(SharedQuery, AWideQueryIsItsFormula) {
  const at::NoGradGuard no_grad;
  AttentionOptions options = with_option(layer_with_map("full"), "query-width", "5");
  for (const bool rotary : {false, true}) {
    options.rotary = rotary;
    const Attention layer = random_attention(options);
    const Tensor x = random_tensor({2, 5, 6}, 11);
    EXPECT_TRUE(same(layer->self(x, {.causal = true}), NaiveAttention(*layer).run(x, x, /*causal=*/true)));
  }
}

AttentionCost cost_of_map(const std::string& map, const AttentionOptions& like = {}) {
  AttentionOptions options = with_option(like, "query-map", map);
  options.scheme = "shared_query";
  options.d_model = 768;
  options.heads = 12;
  return make_scheme(resolve(options))->cost();
}

TEST(SharedQuery, EveryMapHasItsCountAndTheSameCache) {
  const int64_t E = 768, H = 12, D = 64, shared = 3 * E * D + E * H * D;
  const std::vector<std::pair<std::string, int64_t>> numbers = {{"identity", 0},       {"bias", H * D},
                                                                {"diagonal", H * D},   {"complex", H * D},
                                                                {"blocks", 2 * H * D}, {"low_rank", 2 * H * 16 * D},
                                                                {"full", H * D * D}};
  for (const auto& [map, count] : numbers) {
    EXPECT_EQ(cost_of_map(map).parameters, shared + count) << map;
    EXPECT_EQ(cost_of_map(map).cache_elements, 2 * D) << map;
  }
  for (const std::string map : {"bias", "diagonal", "complex", "blocks", "low_rank", "full"}) {
    EXPECT_EQ(cost_of_map(map).effective, cost_of_map(map).parameters) << map;
  }
  EXPECT_EQ(cost_of_map("identity").effective, 4 * E * D) << "as sha";
  const AttentionOptions of_full_rank = with_option({}, "query-rank", "64");
  EXPECT_EQ(cost_of_map("low_rank", of_full_rank).effective, cost_of_map("full").effective);
  EXPECT_EQ(cost_of_map("full", with_option({}, "query-width", "768")).effective, 2 * E * E + 2 * E * D) << "as mqa";
  EXPECT_EQ(cost_of_map("bias", {.content_bias = true}).effective, shared + H * E) << "which the content bias absorbs";
  EXPECT_EQ(cost_of_map("bias", {.content_bias = true, .rotary = true}).effective, shared + H * E + H * D);
}

TEST(SharedQuery, OneTurnedKeyServesAllHeadsWhateverTheMapIs) {
  const at::NoGradGuard no_grad;
  for (const std::string map : {"identity", "bias", "diagonal", "complex", "blocks", "low_rank", "full"}) {
    AttentionOptions options = wide_layer(map);
    options.rotary = true;
    const Attention layer = random_attention(options);
    const Tensor x = random_tensor({1, 3, 6}, 5);
    const Memory memory = layer->scheme().remember(x, /*first=*/2);
    const HeadProblem problem = layer->scheme().posed(layer->scheme().project_queries(x, 2), memory).problem;
    EXPECT_EQ(problem.key.size(1), 1) << map;
    EXPECT_EQ(problem.key.data_ptr(), memory[0].data_ptr()) << map;
  }
}

// One matrix of scores then serves all heads, and the factorised kernel computes it.
TEST(SharedQuery, ABiasThatNothingTurnsIsPosedAsAShiftOfTheQuery) {
  const at::NoGradGuard no_grad;
  for (const bool rotary : {false, true}) {
    AttentionOptions options = wide_layer("bias");
    options.rotary = rotary;
    const Attention layer = random_attention(options);
    const Tensor x = random_tensor({1, 3, 6}, 5);
    const HeadProblem problem = layer->pose(x, x, {}).posed.problem;
    EXPECT_EQ(problem.query_shift.defined(), !rotary);
    EXPECT_EQ(problem.query.size(1), rotary ? 4 : 1);
  }
}

TEST(SharedQuery, ImpossibleMapsNameTheNumbersAndTheWayOut) {
  const auto refused = [](const std::string& map, const std::string& option, const std::string& value,
                          const AttentionOptions& like = {}) {
    return error_message([&] {
      AttentionOptions options = with_option(with_option(like, "query-map", map), option, value);
      options.scheme = "shared_query";
      options.d_model = 32;
      resolve(options);
    });
  };
  EXPECT_THAT(refused("low_rank", "query-rank", "0"), HasSubstr("not 0"));
  EXPECT_THAT(refused("low_rank", "query-rank", "9"), AllOf(HasSubstr("at most 8"), HasSubstr("--query-map full")));
  EXPECT_THAT(refused("bias", "query-rank", "2"), AllOf(HasSubstr("not of bias"), HasSubstr("leave it out")));
  EXPECT_THAT(refused("complex", "query-width", "8"), AllOf(HasSubstr("not about complex"), HasSubstr("leave it out")));
  EXPECT_THAT(refused("full", "query-width", "33"), AllOf(HasSubstr("at most 32"), HasSubstr("not 33")));
  EXPECT_THAT(refused("full", "query-width", "16", {.qk_norm = true}), HasSubstr("leave one of --qk-norm"));
  EXPECT_THAT(refused("blocks", "head-width", "3"), AllOf(HasSubstr("must be even, not 3"), HasSubstr("diagonal")));
  EXPECT_THAT(refused("complex", "head-width", "8", {.rotary = true, .rotary_dimensions = 4}),
              HasSubstr("leave --rotary-dimensions out"));
  EXPECT_THAT(refused("banded", "head-width", "8"), HasSubstr("low_rank"));
}

}  // namespace
}  // namespace headshare
