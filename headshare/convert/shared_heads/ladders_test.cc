// This file tests conversions to lrkv, shared_query and mla: ladders from few shared maps to all that heads had.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "headshare/attention/schemes/mla.h"
#include "headshare/base/testing.h"
#include "headshare/convert/collaborative/head_maps.h"
#include "headshare/convert/shared_heads/shared_heads_model.h"
#include "headshare/models/testing.h"

namespace headshare {
namespace ladders_test {

using testing::AllOf;
using testing::HasSubstr;

const PositionKind kLearned = PositionKind::kLearned, kRotary = PositionKind::kRotary, kAlibi = PositionKind::kAlibi;

Decoder random_source(const std::string& scheme, PositionKind positions, bool biases, int64_t layers = 2) {
  DecoderOptions options = small_options(scheme, positions);
  options.layers = layers;
  options.attention.projection_bias = biases;
  options.attention.scale = 0.4;  // which is kept
  Decoder model = small_decoder(options);
  randomise(*model);
  return model;
}

struct Converted {
  Decoder model{nullptr};
  SharedHeadsReport report;
};

Converted converted(const Decoder& source, const SharedScheme& to, const Tensor& sample = {},
                    const SizeChoice& sizes = {}, int64_t restarts = 0) {
  Converted result;
  SharedHeadsOptions options{.to = to, .sample = sample, .sizes = sizes};
  options.decomposition.restarts = restarts;
  result.model = to_shared(source, options, nullptr, &result.report);
  return result;
}

SharedError error_of(const Converted& one) {
  SharedError sum;
  for (const SharedLayerReport& layer : one.report.layers) {
    sum.scores += layer.result.error.scores;
    sum.values += layer.result.error.values;
  }
  return sum;
}

Tensor logits(const Decoder& model) {
  const at::NoGradGuard no_grad;
  return model->logits(model->hidden(random_ids(3, 10, 13)));
}

void expect_same_logits(const Decoder& a, const Decoder& b) {
  EXPECT_LT((logits(a) - logits(b)).abs().max().item<double>(), 1e-5);
}

struct FullSize {
  SharedScheme to;
  std::string from;
  PositionKind positions;
};

// These hold all that the heads of their source had: E 16, H 4, D 4.
std::vector<FullSize> full_sizes() {
  std::vector<FullSize> all;
  for (const std::string from : {"mha", "gqa", "mqa"}) {
    for (const PositionKind positions : {kLearned, kRotary, kAlibi}) {
      all.push_back({{.scheme = "lrkv", .size = 4}, from, positions});
      if (positions != kRotary) all.push_back({{.scheme = "mla", .size = 16}, from, positions});
    }
  }
  for (const PositionKind positions : {kLearned, kRotary, kAlibi}) {
    all.push_back({{.scheme = "shared_query", .size = 16, .variant = "full"}, "mqa", positions});
  }
  return all;
}

TEST(Ladders, FullSizesLoseNothing) {
  for (const FullSize& one : full_sizes()) {
    for (const bool biases : {false, true}) {
      SCOPED_TRACE(name_of(one.to) + " from " + one.from + " " + position_name(one.positions));
      const Decoder source = random_source(one.from, one.positions, biases);
      const Converted full = converted(source, one.to);
      EXPECT_LT(error_of(full).scores, 1e-5);
      EXPECT_LT(error_of(full).values, 1e-5);
      expect_same_logits(source, full.model);
      expect_counted(full.model);
    }
  }
}

// Heads that differ in constants alone are held by residuals of rank 1, of keys also where positions turn them.
TEST(Ladders, ConstantResidualsAreThoseOfMheAdd) {
  for (const PositionKind positions : {kLearned, kRotary}) {
    SCOPED_TRACE(position_name(positions));
    const Decoder source = random_source("mhe_add", positions, /*biases=*/true);
    const Converted lrkv = converted(source, {.scheme = "lrkv", .size = 1});
    expect_same_logits(source, lrkv.model);
    const Converted mhe = converted(source, {.scheme = "mhe_add"});
    EXPECT_NEAR(error_of(lrkv).scores, error_of(mhe).scores, 1e-5);
  }
}

TEST(Ladders, MapsOfOneFormComeBackAsTheyWere) {
  for (const auto& [map, positions] : std::vector<std::pair<std::string, PositionKind>>{{"identity", kLearned},
                                                                                        {"identity", kRotary},
                                                                                        {"bias", kLearned},
                                                                                        {"bias", kRotary},
                                                                                        {"diagonal", kLearned},
                                                                                        {"complex", kRotary},
                                                                                        {"full", kLearned},
                                                                                        {"full", kRotary}}) {
    SCOPED_TRACE(map + " " + position_name(positions));
    DecoderOptions options = small_options("shared_query", positions);
    options.attention.projection_bias = true;
    Fields list = fields(options.attention);
    set_field(list, "query-map", map, "a test");
    const Decoder source = small_decoder(options);
    randomise(*source);
    // A decomposition does not find every layer from its first start.
    const Converted again = converted(source, {.scheme = "shared_query", .variant = map}, {}, {}, /*restarts=*/8);
    EXPECT_LT(error_of(again).scores, 1e-4);
    EXPECT_LT((logits(source) - logits(again.model)).abs().max().item<double>(), 1e-3);
  }
}

// Each list leads from little to more of the same: errors fall.
TEST(Ladders, ErrorsFallWithWhatHeadsMayHave) {
  using Rungs = std::vector<SharedScheme>;
  const Rungs residuals = {{"mqa"}, {"lrkv", 1}, {"lrkv", 2}, {"lrkv", 3}, {"lrkv", 4}};
  const Rungs ranks = {{.scheme = "shared_query", .variant = "identity"},
                       {.scheme = "shared_query", .size = 1, .variant = "low_rank"},
                       {.scheme = "shared_query", .size = 2, .variant = "low_rank"},
                       {.scheme = "shared_query", .size = 4, .variant = "low_rank"},
                       {.scheme = "shared_query", .size = 8, .variant = "full"},
                       {.scheme = "mqa"}};
  const Rungs blocks = {{.scheme = "shared_query", .variant = "identity"},
                        {.scheme = "shared_query", .variant = "diagonal"},
                        {.scheme = "shared_query", .variant = "blocks"},
                        {.scheme = "shared_query", .variant = "full"}};
  Rungs pairs = blocks;
  pairs[1].variant = "complex";
  const Rungs latents = {{"mla", 3}, {"mla", 6}, {"mla", 9}, {"mla", 12}, {"mla", 16}};
  for (const PositionKind positions : {kLearned, kRotary}) {
    const Decoder source = random_source("mha", positions, /*biases=*/true, /*layers=*/1);
    for (const Rungs& rungs : {residuals, ranks, blocks, pairs, latents}) {
      if (rungs.front().scheme == "mla" && positions == kRotary) continue;
      double before = 1;
      for (const SharedScheme& to : rungs) {
        const double now = error_of(converted(source, to)).scores;
        EXPECT_LE(now, before + 1e-6) << name_of(to) << " " << position_name(positions);
        before = now;
      }
    }
  }
}

// Without rotary positions a bias of the query is all that MHE-ADD has, and a factor for each dimension is MHE-MUL's.
TEST(Ladders, BiasAndDiagonalLoseWhatMheLoses) {
  const Decoder source = random_source("mha", kLearned, /*biases=*/true);
  const auto scores = [&](const SharedScheme& to) { return error_of(converted(source, to)).scores; };
  EXPECT_NEAR(scores({.scheme = "shared_query", .variant = "bias"}), scores({"mhe_add"}), 1e-4);
  EXPECT_LE(scores({.scheme = "shared_query", .variant = "diagonal"}), scores({"mhe_mul"}) + 1e-4);
}

// A latent vector spans the leading directions of keys and values, each a share of its energy: no other does better.
TEST(Ladders, ALatentVectorIsTheBestThereIs) {
  const Decoder source = random_source("mha", kLearned, /*biases=*/false, /*layers=*/1);
  const HeadMaps maps = head_maps(source->attention(0)->scheme(), "layer 1");
  const auto side = [](const Tensor& left, const Tensor& right) {  // all heads' products side by side, of energy 1
    const Tensor products = left.matmul(right.mT()).transpose(0, 1).flatten(1);
    return products / at::linalg_vector_norm(products);
  };
  const Tensor both = at::cat({side(maps.key, maps.query), side(maps.value, maps.output.transpose(1, 2))}, 1);
  const Tensor tail = at::linalg_svdvals(both).slice(0, 5).square().sum();
  const SharedError error = converted(source, {"mla", 5}).report.layers[0].result.error;
  EXPECT_NEAR(error.scores * error.scores + error.values * error.values, tail.item<double>(), 1e-6);
}

// Both factors of a product learn alike where they are as long: the dimensions of each residual, those of a latent
// vector and of the heads' maps of it.
TEST(Ladders, FactorsOfAProductAreEquallyLong) {
  const Decoder source = random_source("mha", kLearned, /*biases=*/true, /*layers=*/1);
  const auto parameters = [&](const SharedScheme& to) {
    NamedTensors all;
    const Decoder model = converted(source, to).model;
    for (const Declared& one : declared_parameters(model->attention(0)->scheme())) {
      all[one.name] = one.tensor.detach().to(at::kDouble);
    }
    return all;
  };
  const auto expect_alike = [](const Tensor& one, const Tensor& other) {
    EXPECT_LT(((one / other).log().abs().max().item<double>()), 1e-4);
  };
  const NamedTensors lrkv = parameters({"lrkv", 2});
  for (const std::string side : {"key", "value"}) {
    const Tensor inner = lrkv.at(side + ".weight").slice(0, 4).view({4, 2, 16});  // of 4 heads, behind the shared map
    expect_alike(inner.square().sum(2), lrkv.at(side + "_residual").square().sum(2));
  }
  const NamedTensors mla = parameters({"mla", 6});
  const auto of_heads = [&](const std::string& name) { return mla.at(name).view({4, 4, 6}).square().sum(1).mean(0); };
  expect_alike(mla.at("latent.weight").square().sum(1), of_heads("key.weight") + of_heads("value.weight"));
}

TEST(Ladders, ASampleMakesLayersBetterWhereItIs) {
  const Tensor sample = random_ids(30, 10, 13, /*seed=*/5).clamp_max(3);  // four tokens: few directions count
  for (const SharedScheme& to :
       {SharedScheme{"lrkv", 1}, SharedScheme{.scheme = "shared_query", .variant = "complex"},
        SharedScheme{.scheme = "shared_query", .variant = "bias"},
        SharedScheme{.scheme = "shared_query", .size = 1, .variant = "low_rank"}, SharedScheme{"mla", 5}}) {
    const Decoder source = random_source("mha", kLearned, /*biases=*/true);
    const Converted whitened = converted(source, to, sample), plain = converted(source, to);
    const std::vector<double> blind = output_changes(source, plain.model, sample);
    for (size_t i = 0; i < blind.size(); ++i) {
      EXPECT_LT(whitened.report.layers[i].output_change, blind[i]) << name_of(to) << ", layer " << i + 1;
    }
    EXPECT_LT(whitened.report.change.divergence, answer_change(source, plain.model, sample).divergence) << name_of(to);
  }
}

// Decoding token by token from the cache that is counted gives what the whole pass gives.
TEST(Ladders, ConvertedModelsDecodeFromTheCacheThatTheyCount) {
  const at::NoGradGuard no_grad;
  for (const PositionKind positions : {kLearned, kRotary}) {
    const Decoder source = random_source("mha", positions, /*biases=*/true);
    for (const SharedScheme& to : {SharedScheme{"lrkv", 2}, SharedScheme{.scheme = "shared_query", .variant = "blocks"},
                                   SharedScheme{"mla", 6}}) {
      if (to.scheme == "mla" && positions == kRotary) continue;
      SCOPED_TRACE(name_of(to) + " " + position_name(positions));
      const Decoder model = converted(source, to).model;
      const Tensor ids = random_ids(2, 8, 13);
      DecodingState state = model->new_state(8);
      std::vector<Tensor> rows;
      for (int64_t i = 0; i < ids.size(1); ++i) rows.push_back(model->hidden(ids.slice(1, i, i + 1), &state));
      EXPECT_LT((at::cat(rows, 1) - model->hidden(ids)).abs().max().item<double>(), 1e-5);
      const int64_t counted = measure(model->options()).cache_elements_per_token;
      for (const KvCache& cache : state.caches) EXPECT_EQ(cache.elements_per_token(), counted);
      EXPECT_LT(counted, 2 * 4 * 4);
    }
  }
}

std::vector<int64_t> latent_widths(const Decoder& model) {
  return model->options().attention.own.get<MlaOptions>().layer_kv_latents;
}

// One layer's keys and values come from 2 dimensions of 16, those of the other two need them all.
Decoder uneven_source() {
  const at::NoGradGuard no_grad;
  const Decoder source = random_source("mha", kLearned, /*biases=*/true, /*layers=*/3);
  const Tensor narrow = at::matmul(random_tensor({16, 2}, 71, at::kFloat), random_tensor({2, 16}, 72, at::kFloat));
  for (const Declared& one : declared_parameters(*source->attention(1))) {
    const bool memory = one.name.ends_with("key.weight") || one.name.ends_with("value.weight");
    if (memory) one.tensor.copy_(one.tensor.matmul(narrow));
  }
  return source;
}

TEST(Ladders, LayersGetTheLatentWidthThatTheyNeed) {
  const Decoder source = uneven_source();
  const Converted shared = converted(source, {"mla"}, {}, {.mean = 10});
  const std::vector<int64_t> widths = latent_widths(shared.model);
  ASSERT_EQ(widths.size(), 3U);
  EXPECT_EQ(widths[1], 2);
  EXPECT_GT(widths[0], 10);
  EXPECT_LE(std::accumulate(widths.begin(), widths.end(), int64_t{0}), 30);
  EXPECT_LT(error_of(shared).scores, error_of(converted(source, {"mla", 10})).scores);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(shared.report.layers[i].size, widths[i]);
  expect_counted(shared.model);
  const Converted within = converted(source, {"mla"}, {}, {.max_error = 0.2});
  for (const SharedLayerReport& layer : within.report.layers) {
    EXPECT_LE(std::max(layer.result.error.scores, layer.result.error.values), 0.2 + 1e-6);
    EXPECT_LE(*layer.size, 16);
  }
  EXPECT_EQ(within.report.layers[1].size, 2);
}

TEST(Ladders, WhatCannotBeIsRefusedWithTheWayOut) {
  const auto refused = [](const SharedScheme& to, PositionKind positions, void (*change)(DecoderOptions*) = nullptr,
                          const std::string& from = "mha", const SizeChoice& sizes = {}) {
    DecoderOptions options = small_options(from, positions);
    if (change != nullptr) change(&options);
    return error_message([&] { converted(small_decoder(options), to, {}, sizes); });
  };
  const auto normed = [](DecoderOptions* o) { o->attention.qk_norm = true; };
  for (const SharedScheme& to : {SharedScheme{"lrkv"}, SharedScheme{"shared_query"}, SharedScheme{"mla"}}) {
    EXPECT_THAT(refused(to, kLearned, normed), AllOf(HasSubstr("(qk-norm)"), HasSubstr("--teacher"))) << to.scheme;
  }
  EXPECT_THAT(refused({"lrkv", 0}, kLearned), HasSubstr("rank 0 of lrkv is not within 1..4"));
  EXPECT_THAT(refused({"lrkv", 5}, kLearned), HasSubstr("rank 5 of lrkv is not within 1..4"));
  EXPECT_THAT(refused({"mla", 0}, kLearned), HasSubstr("latent width 0 of mla is not within 1..16"));
  EXPECT_THAT(refused({"mla", 17}, kLearned), HasSubstr("latent width 17 of mla is not within 1..16"));
  EXPECT_THAT(refused({"mla", 4}, kRotary), AllOf(HasSubstr("what is turned"), HasSubstr("convert it to lrkv")));
  EXPECT_THAT(refused({"mla"}, kLearned, nullptr, "mha", {.mean = 17}), HasSubstr("a mean of 17 is above 16"));
  EXPECT_THAT(refused({"lrkv"}, kLearned, nullptr, "mha", {.mean = 2}), HasSubstr("layers of lrkv have one size"));
  EXPECT_THAT(refused({"mqa"}, kLearned, nullptr, "mla"), AllOf(HasSubstr("latent vectors"), HasSubstr("--teacher")));
  EXPECT_THAT(refused({"mqa", {}, Pooling::kLeastSquares, "full"}, kLearned), HasSubstr("mqa has no kinds"));
  const auto query = [&](const std::string& map, int64_t size) {
    return refused({.scheme = "shared_query", .size = size, .variant = map}, kLearned);
  };
  EXPECT_THAT(query("low_rank", 0), HasSubstr("shared_query:low_rank:0 is not within 1..4"));
  EXPECT_THAT(query("low_rank", 5), HasSubstr("shared_query:low_rank:5 is not within 1..4"));
  EXPECT_THAT(query("full", 17), HasSubstr("shared_query:full:17 is not within 1..16"));
  EXPECT_THAT(query("diagonal", 2), HasSubstr("maps of form diagonal have no size"));
}

}  // namespace ladders_test
}  // namespace headshare
