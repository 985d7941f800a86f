#include "headshare/analyze/seen_scores.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "headshare/analyze/similarity.h"
#include "headshare/analyze/spectra.h"
#include "headshare/convert/collaborative/collaborative.h"
#include "headshare/convert/collaborative/layer_problem.h"
#include "headshare/models/testing.h"

namespace headshare {
namespace {

constexpr int64_t kRows = 3, kLength = 7;

Attention random_layer(const AttentionOptions& options) {
  Attention layer(resolve(options));
  attach(*layer, std::make_shared<DropoutClock>());
  randomise(*layer);
  layer->eval();
  return layer;
}

Tensor tokens_read(int64_t d_model) { return at::randn({kRows, kLength, d_model}, keyed_generator(at::kCPU, 5)); }

HeadSlices seen_in(const Attention& layer, const Tensor& x) {
  const at::NoGradGuard no_grad;
  SeenScores seen;
  seen.add(layer->scheme(), x.slice(0, 0, 1));
  seen.add(layer->scheme(), x.slice(0, 1));
  return seen.slices();
}

void expect_same_spectrum(const Spectrum& found, const Spectrum& expected) {
  ASSERT_EQ(found.values.size(), expected.values.size());
  EXPECT_EQ(found.dimensions, expected.dimensions);
  for (size_t i = 0; i < found.values.size(); ++i) {
    EXPECT_NEAR(found.values[i], expected.values[i], 1e-6 * expected.values.front()) << i;
  }
}

// Queries and keys [H, N, D] of a layer with normed ones, by the formula.
std::pair<Tensor, Tensor> normed_vectors(const Attention& layer, const Tensor& x, int64_t heads, int64_t groups) {
  const auto side = [&](const char* name, int64_t n) {
    NamedTensors all;
    for (const Declared& one : declared_parameters(layer->scheme())) all.emplace(one.name, one.tensor.to(at::kDouble));
    const Tensor rows = x.reshape({-1, x.size(2)}).to(at::kDouble);
    const Tensor z = rows.matmul(all.at(std::string(name) + ".weight").t()).view({rows.size(0), n, -1});
    const Tensor normed = z / (z.square().mean(-1, true) + 1e-6).sqrt() * all.at(std::string(name) + "_norm.weight");
    return normed.repeat_interleave(heads / n, 1).transpose(0, 1);
  };
  return {side("query", heads), side("key", groups)};
}

// Scores of all pairs of tokens, [H, N, N].
TEST(SeenScores, AreThoseOfNormedQueriesAndKeys) {
  const Attention layer = random_layer({.scheme = "mqa", .d_model = 12, .heads = 3, .qk_norm = true});
  const Tensor x = tokens_read(12);
  auto [query, key] = normed_vectors(layer, x, 3, 1);
  key = key - key.mean(1, /*keepdim=*/true);
  const Tensor scores = query.matmul(key.transpose(1, 2)) / (kRows * kLength);
  const HeadSlices slices = seen_in(layer, x);
  const std::vector<Spectrum> heads = head_spectra(slices);
  for (int64_t h = 0; h < 3; ++h) {
    const Tensor values = at::linalg_svdvals(scores[h]);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(heads[static_cast<size_t>(h)].values[static_cast<size_t>(i)], values[i].item<double>(),
                  1e-6 * values[0].item<double>());
    }
  }
  const Tensor flat = scores.flatten(1);
  const Tensor cosines = flat.matmul(flat.t()) / at::outer(flat.norm(2, 1), flat.norm(2, 1));
  const HeadSimilarity found = weight_similarity(slices);
  for (int64_t h = 0; h < 3; ++h) {
    for (int64_t g = 0; g < 3; ++g) {
      EXPECT_NEAR(found[static_cast<size_t>(h)][static_cast<size_t>(g)], cosines[h][g].item<double>(), 1e-9);
    }
  }
}

// Where weights do say what heads compare, both ways agree, with rotary positions as well.
TEST(SeenScores, AreThoseOfWeightsThatTheTextWeighs) {
  for (const bool rotary : {false, true}) {
    const Attention layer = random_layer({.scheme = "gqa", .d_model = 12, .heads = 6, .rotary = rotary});
    const Tensor x = tokens_read(12);
    MomentSums sums;
    sums.add(x);
    const Moments moments = sums.moments();
    const HeadMaps maps = head_maps(layer->scheme(), "layer");
    const ProblemForm form{.frequencies = rotary ? 1 : 0, .key_about_mean = !rotary};
    const HeadSlices expected =
        LayerProblem(maps, form, {.query = &moments, .key = &moments}, InputWeights::kOwn).slices();
    const HeadSlices found = seen_in(layer, x);
    EXPECT_EQ(found.query.is_complex(), rotary);
    const int64_t width = full_key_width(layer->scheme().options());
    expect_same_spectrum(joint_spectrum(found, width), joint_spectrum(expected, width));
    expect_same_spectrum(stacked_spectrum(found, width), stacked_spectrum(expected, width));
    for (size_t h = 0; h < 6; ++h) expect_same_spectrum(head_spectra(found)[h], head_spectra(expected)[h]);
  }
}

}  // namespace
}  // namespace headshare
