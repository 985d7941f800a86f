#include "headshare/analyze/similarity.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/analyze/seen_layer.h"
#include "headshare/base/rng.h"
#include "headshare/base/testing.h"
#include "headshare/models/testing.h"
#include "headshare/ops/head_attention/head_weights.h"

namespace headshare {
namespace {

Tensor normal(at::IntArrayRef sizes, uint64_t key, at::ScalarType type = at::kDouble) {
  return at::randn(sizes, keyed_generator(at::kCPU, key), at::TensorOptions(type));
}

TEST(WeightSimilarity, IsTheCosineOfTheFormedMaps) {
  for (const auto type : {at::kDouble, at::kComplexDouble}) {
    const int64_t F = type == at::kDouble ? 1 : 4;
    const HeadSlices s{normal({F, 3, 10, 2}, 1, type), normal({F, 3, 10, 2}, 2, type)};
    const HeadSimilarity heads = weight_similarity(s);
    const Tensor flat = at::view_as_real(s.query.matmul(at::adjoint(s.key)).to(at::kComplexDouble));
    const Tensor maps = flat.transpose(0, 1).flatten(1);  // [H, ..]
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        const double cosine =
            (maps[i].dot(maps[j]) / at::linalg_vector_norm(maps[i]) / at::linalg_vector_norm(maps[j])).item<double>();
        EXPECT_NEAR(heads[static_cast<size_t>(i)][static_cast<size_t>(j)], cosine, 1e-12);
      }
    }
  }
}

TEST(WeightSimilarity, OfEqualHeadsIsOneWhateverTheirBases) {
  HeadSlices s{normal({1, 4, 10, 3}, 1), normal({1, 4, 10, 3}, 2)};
  s.query[0][1] = s.query[0][0];
  s.key[0][1] = s.key[0][0];
  const Tensor basis = normal({3, 3}, 3);
  s.query[0][2] = s.query[0][0].matmul(basis);
  s.key[0][2] = s.key[0][0].matmul(at::linalg_inv(basis).t());
  s.query[0][3] = -s.query[0][0];
  s.key[0][3] = s.key[0][0];
  const HeadSimilarity heads = weight_similarity(s);
  EXPECT_NEAR(heads[0][1], 1, 1e-12);
  EXPECT_NEAR(heads[0][2], 1, 1e-12);
  EXPECT_NEAR(heads[0][3], -1, 1e-12);
}

TEST(WeightSimilarity, OfAHeadOfZerosIsZero) {
  HeadSlices s{normal({1, 2, 10, 3}, 1), normal({1, 2, 10, 3}, 2)};
  s.query[0][1].zero_();
  const HeadSimilarity heads = weight_similarity(s);
  EXPECT_EQ(heads[0][1], 0);
  EXPECT_EQ(heads[1][1], 1);
}

TEST(MapSimilarity, IsOneForEqualMapsAndZeroForDisjointOnes) {
  // Heads 1 and 2 look at the first key, head 3 at the second, head 4 at both.
  const Tensor rows = at::tensor({1.F, 0.F, 1.F, 0.F, 0.F, 1.F, 0.5F, 0.5F}).view({1, 4, 1, 2});
  MapSimilarity maps;
  maps.add(rows.expand({2, 4, 3, 2}), /*first=*/1);
  const HeadSimilarity heads = maps.similarity();
  EXPECT_NEAR(heads[0][1], 1, 1e-6);
  EXPECT_NEAR(heads[0][2], 0, 1e-6);
  EXPECT_NEAR(heads[2][0], 0, 1e-6);
  // The divergence of (1, 0) and (1/2, 1/2) is H(3/4, 1/4) - 1/2 bits.
  EXPECT_NEAR(heads[0][3], 1 - (0.8112781245 - 0.5), 1e-6);
  EXPECT_EQ(heads[3][3], 1);
}

TEST(MapSimilarity, LeavesOutTheFirstQueries) {
  Tensor maps = at::zeros({1, 2, 2, 2});
  maps.select(3, 0).fill_(1);
  maps[0][1][1] = at::tensor({0.F, 1.F});  // the heads differ at the second query alone
  MapSimilarity all, later;
  all.add(maps, 0);
  later.add(maps, 1);
  EXPECT_NEAR(all.similarity()[0][1], 0.5, 1e-6);
  EXPECT_NEAR(later.similarity()[0][1], 0, 1e-6);
}

// The output of a layer is what its attention weights make of values.
TEST(AttentionWeights, GiveTheOutputOfTheLayer) {
  const at::NoGradGuard no_grad;
  for (const std::string scheme : {"mha", "gqa", "mqa"}) {
    for (const PositionKind positions : {PositionKind::kLearned, PositionKind::kRotary, PositionKind::kAlibi}) {
      for (const bool causal : {true, false}) {
        const Decoder model = small_decoder(small_options(scheme, positions));
        randomise(*model);
        const Attention layer = model->attention(0);
        const Tensor x = normal({2, 7, 16}, 4, at::kFloat);
        const Tensor weights = attention_weights(layer, x, {.causal = causal});
        EXPECT_LT((weights.sum(3) - 1).abs().max().item<double>(), 1e-5);
        const Scheme& s = layer->scheme();
        const Posed posed = s.posed(s.project_queries(x, 0), s.remember(x, 0));
        const Tensor& own = posed.problem.value;
        const Tensor values = own.repeat_interleave(4 / own.size(1), 1);
        const Tensor output = s.merge(posed, weights.matmul(values), Tensor());
        const Tensor expected = layer->self(x, {.causal = causal});
        EXPECT_LT((output - expected).abs().max().item<double>(), 1e-4) << scheme << " " << position_name(positions);
      }
    }
  }
}

TEST(FirstTokens, AreWholeRowsUpToALength) {
  const Tensor ids = at::zeros({5, 10}, at::kLong);
  EXPECT_EQ(first_tokens(ids, 25).sizes(), at::IntArrayRef({2, 10}));
  EXPECT_EQ(first_tokens(ids, 1).sizes(), at::IntArrayRef({1, 10}));
  EXPECT_EQ(first_tokens(ids, 1000).sizes(), at::IntArrayRef({5, 10}));
  EXPECT_EQ(first_tokens(at::zeros({3, 5000}, at::kLong), 2048).sizes(), at::IntArrayRef({2, 1024}));
}

HeadProblem random_problem() {
  return {.heads = 4,
          .query = normal({2, 1, 3, 5}, 1),
          .key = normal({2, 1, 6, 5}, 2),
          .value = Tensor(),
          .query_shift = normal({4, 5}, 3),
          .key_bias = normal({2, 4, 6}, 4),
          .scale = 0.7};
}

// The test computes the plain formula, number by number.
TEST(HeadWeights, HaveTheShiftOfQueriesAndTheBiasOfKeys) {
  const HeadProblem p = random_problem();
  const Tensor weights = head_weights(p, {});
  ASSERT_EQ(weights.sizes(), at::IntArrayRef({2, 4, 3, 6}));
  for (int64_t h = 0; h < 4; ++h) {
    const Tensor query = p.query[1][0] + p.query_shift[h];  // [T, D]
    const Tensor scores = p.scale * (query.matmul(p.key[1][0].t()) + p.key_bias[1][h]);
    EXPECT_LT((weights[1][h] - scores.softmax(-1)).abs().max().item<double>(), 1e-12) << h;
  }
}

TEST(HeadWeights, OfQueriesThatSeeNoKeyAreZero) {
  const HeadProblem p = random_problem();
  Tensor visible = at::ones({2, 6}, at::kBool);
  visible[0].slice(0, 0, 5).fill_(false);  // of a causal mask over 6 keys, queries 0 and 1 see keys 0 to 3 and 4
  const Tensor weights = head_weights(p, {.causal = true, .visible_keys = visible});
  EXPECT_TRUE(weights[0].slice(1, 0, 2).eq(0).all().item<bool>());
  EXPECT_TRUE(weights[0].select(1, 2).select(1, 5).eq(1).all().item<bool>());
  EXPECT_LT((weights[1].sum(2) - 1).abs().max().item<double>(), 1e-12);
}

TEST(SeenMemory, IsBounded) {
  EXPECT_NO_THROW(check_seen_memory(2048, 4096, 32));
  EXPECT_THAT(
      error_message([] { check_seen_memory(1 << 20, 768, 12); }),
      testing::HasSubstr("on 1048576 tokens takes 72.0 GiB of memory, more than 8.0 GiB; give --map-tokens 116508"));
}

}  // namespace
}  // namespace headshare
