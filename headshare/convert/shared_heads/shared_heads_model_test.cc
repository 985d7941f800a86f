#include "headshare/convert/shared_heads/shared_heads_model.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "headshare/attention/scheme_record.h"
#include "headshare/attention/schemes/mhe_options.h"
#include "headshare/attention/schemes/mla.h"
#include "headshare/base/testing.h"
#include "headshare/convert/collaborative/collaborative.h"
#include "headshare/convert/collaborative/fill_scheme.h"
#include "headshare/convert/shared_heads/conversion_record.h"
#include "headshare/convert/shared_heads/head_groups.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/testing.h"

namespace headshare {
namespace share_model_test {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor logits(const Decoder& model) {
  const at::NoGradGuard no_grad;
  return model->logits(model->hidden(random_ids(3, 10, 13)));
}

double largest_difference(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

Decoder random_decoder(const std::string& scheme, PositionKind positions, bool biases) {
  DecoderOptions options = small_options(scheme, positions);
  options.attention.own.get<MlaOptions>().kv_norm = false;  // a norm would stand between the maps of heads
  options.attention.projection_bias = options.attention.content_bias = biases;
  Decoder model = small_decoder(options);
  randomise(*model);
  return model;
}

Decoder shared(const Decoder& source, const SharedHeadsOptions& options, SharedHeadsReport* report) {
  return to_shared(source, options, nullptr, report);
}

struct Case {
  std::string scheme;
  PositionKind positions;
  bool biases;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& one : conversion_records()) {
    for (const PositionKind positions : {PositionKind::kLearned, PositionKind::kRotary, PositionKind::kAlibi}) {
      if (one->scheme == "mla" && positions == PositionKind::kRotary) continue;  // which is refused
      for (const bool biases : {false, true}) all.push_back({one->scheme, positions, biases});
    }
  }
  return all;
}

class ToShared : public testing::TestWithParam<Case> {};

// A layer that shares already loses nothing by becoming what it is.
TEST_P(ToShared, KeepsWhatIsSharedAlready) {
  const Decoder source = random_decoder(GetParam().scheme, GetParam().positions, GetParam().biases);
  SharedHeadsReport report;
  SharedHeadsOptions options;
  options.to.scheme = GetParam().scheme;
  const Decoder target = shared(source, options, &report);
  for (const SharedLayerReport& layer : report.layers) {
    EXPECT_LT(layer.result.error.scores, 1e-5) << layer.layer;
    EXPECT_LT(layer.result.error.values, 1e-5) << layer.layer;
  }
  EXPECT_LT(largest_difference(logits(source), logits(target)), 1e-3);
  EXPECT_EQ(target->options().attention.scale, source->options().attention.scale);
  expect_counted(target);
}

// A factor on cosines is not multiplied into the maps.
TEST(SharedHeadsModel, ScaledRotationsAreKept) {
  for (const std::string scheme : {"mqa", "mhe_add", "mhe_mul", "skv", "lrkv", "shared_query"}) {
    DecoderOptions options = small_options(scheme, PositionKind::kRotary);
    options.attention.rotary_scaling = {
        .kind = RotaryScalingKind::kYarn, .factor = 4, .original_context = 16, .attention_factor = 1.5};
    const Decoder source = small_decoder(options);
    randomise(*source);
    SharedHeadsReport report;
    const Decoder target = shared(source, {.to = {.scheme = scheme}}, &report);
    EXPECT_LT(largest_difference(logits(source), logits(target)), 1e-3) << scheme;
    EXPECT_EQ(target->options().attention.rotary_scaling, options.attention.rotary_scaling) << scheme;
  }
}

// With heads that are alike nothing is lost; what each site had in common is kept.
TEST_P(ToShared, ConvertsEncoderDecoders) {
  if (GetParam().biases) return;           // these models are the same with either value
  if (GetParam().scheme == "mla") return;  // whose latent vectors these models norm
  SharedHeadsReport report;
  SharedHeadsOptions options;
  options.to.scheme = GetParam().scheme;
  options.decomposition.restarts = 8;  // of mhe_mul, which does not find every layer from its first start
  const EncoderDecoder source = random_translator(GetParam().scheme, GetParam().scheme, GetParam().positions);
  const EncoderDecoder target = to_shared(source, options, nullptr, &report);
  ASSERT_EQ(report.layers.size(), 6U);
  EXPECT_EQ(report.layers[0].layer, "encoder layer 1");
  for (const SharedLayerReport& layer : report.layers) {
    EXPECT_LT(layer.result.error.scores, 1e-5) << layer.layer;
    EXPECT_LT(layer.result.error.values, 1e-5) << layer.layer;
  }
  EXPECT_EQ(target->options().sites->cross.scheme, GetParam().scheme);
  const at::NoGradGuard no_grad;
  const auto answer = [](const EncoderDecoder& model) {
    return model->hidden(random_ids(3, 10, 13, /*seed=*/2), model->encode({.ids = random_ids(3, 7, 13)}));
  };
  EXPECT_LT(largest_difference(answer(source), answer(target)), 1e-3);
}

TEST_P(ToShared, SaysWhatAModelOfSeparateHeadsLoses) {
  const Decoder source = random_decoder("mha", GetParam().positions, GetParam().biases);
  const Tensor sample = random_ids(40, 10, 13, /*seed=*/5);
  SharedHeadsReport blind, shown;
  SharedHeadsOptions options;
  options.to.scheme = GetParam().scheme;
  shared(source, options, &blind);
  options.sample = sample;
  const Decoder target = shared(source, options, &shown);
  for (size_t i = 0; i < blind.layers.size(); ++i) {
    EXPECT_GT(blind.layers[i].result.error.scores + blind.layers[i].result.error.values, 0.05);
    EXPECT_LT(blind.layers[i].result.error.scores, 1);
    EXPECT_LT(blind.layers[i].result.error.values, 1);
    EXPECT_EQ(blind.layers[i].output_change, -1);
    EXPECT_GT(shown.layers[i].output_change, 0);
    EXPECT_LT(shown.layers[i].output_change, 1);
  }
  EXPECT_GT(shown.change.divergence, 0);
  EXPECT_EQ(target->options().attention.scheme, GetParam().scheme);
  expect_counted(target);
}

void expect_finite(const Decoder& model, const std::string& what) {
  for (const Declared& one : declared_parameters(*model)) {
    EXPECT_TRUE(at::isfinite(one.tensor).all().item<bool>()) << what << ": " << one.name;
    EXPECT_LT(one.tensor.abs().max().item<double>(), 1e4) << what << ": " << one.name;
  }
}

// Layers of which a part is 0, as pruning leaves them.
TEST_P(ToShared, TakesLayersOfWhichAPartIsZero) {
  for (const std::string part : {"query", "key", "value", "output"}) {
    for (const bool with_sample : {false, true}) {
      const std::string what = part + (with_sample ? ", with a sample" : "");
      const Decoder source = random_decoder("mha", GetParam().positions, GetParam().biases);
      zero_part(*source->attention(0), part);
      SharedHeadsReport report;
      SharedHeadsOptions options;
      options.to.scheme = GetParam().scheme;
      if (with_sample) options.sample = random_ids(4, 10, 13);
      ASSERT_NO_THROW(expect_finite(shared(source, options, &report), what)) << what;
      for (const SharedLayerReport& layer : report.layers) {
        EXPECT_TRUE(std::isfinite(layer.result.error.scores)) << what;
        EXPECT_TRUE(std::isfinite(layer.result.error.values)) << what;
        EXPECT_TRUE(std::isfinite(layer.output_change)) << what;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, ToShared, testing::ValuesIn(cases()), [](const testing::TestParamInfo<Case>& one) {
  return one.param.scheme + "_" + position_name(one.param.positions) + (one.param.biases ? "_biases" : "");
});

AttentionOptions mha_options(bool rotary) {
  AttentionOptions options{.d_model = 16, .heads = 6, .head_width = 4};
  options.rotary = rotary;
  return resolve(options);
}

// A layer of separate heads that are those of `groups` groups in the given order, each in a basis of its own.
std::shared_ptr<Scheme> hidden_groups(const AttentionOptions& options, const std::vector<int64_t>& group_of) {
  const at::NoGradGuard no_grad;
  at::manual_seed(3);
  const int64_t H = options.heads, E = options.d_model, D = *options.head_width;
  const std::shared_ptr<Scheme> scheme = make_scheme(options);
  const auto draw = [](std::vector<int64_t> shape) { return at::randn(shape, at::kDouble); };
  const Tensor index = at::tensor(group_of, at::kLong);
  const Tensor keys = draw({H, E, D}).index_select(0, index);
  const Tensor values = draw({H, E, D}).index_select(0, index);
  Tensor bases = std::get<0>(at::linalg_qr(draw({2, H, D, D})));
  Tensor key_basis = bases[0];
  if (options.rotary) {  // what commutes with turning: a rotation of each pair
    const Tensor angle = draw({H, D / 2});
    const Tensor c = at::diag_embed(angle.cos()), s = at::diag_embed(angle.sin());
    key_basis = at::cat({at::cat({c, s}, 2), at::cat({-s, c}, 2)}, 1);
  }
  SchemeFiller filler(scheme.get());
  filler.set("query.weight", draw({H, E, D}).matmul(key_basis).transpose(1, 2));
  filler.set("key.weight", keys.matmul(key_basis).transpose(1, 2));
  filler.set("value.weight", values.matmul(bases[1]).transpose(1, 2));
  filler.set("output.weight", bases[1].mT().matmul(draw({H, D, E})).flatten(0, 1).t());
  return scheme;
}

SharedResult fill(const Scheme& source, const SharedScheme& to) {
  const HeadMaps maps = head_maps(source, "layer 1");
  const std::shared_ptr<Scheme> target = make_scheme(converted_options(source.options(), to, false));
  return fill_shared({.maps = maps, .pooling = to.pooling}, target.get());
}

class HiddenGroups : public testing::TestWithParam<bool> {};

// Groups are found though their heads are scattered and look different; plain means see none of it.
TEST_P(HiddenGroups, AreFound) {
  const std::shared_ptr<Scheme> source = hidden_groups(mha_options(GetParam()), {0, 1, 2, 1, 0, 2});
  for (const Pooling pooling : {Pooling::kLeastSquares, Pooling::kAligned}) {
    const SharedResult result = fill(*source, {.scheme = "gqa", .size = 3, .pooling = pooling});
    EXPECT_THAT(result.groups, ElementsAre(ElementsAre(0, 4), ElementsAre(1, 3), ElementsAre(2, 5)));
    EXPECT_LT(result.error.scores, 1e-6);
    EXPECT_LT(result.error.values, 1e-6);
    EXPECT_LT(result.aligned_mean->scores, 1e-6);
    EXPECT_GT(result.plain_mean->scores, 0.5);
    EXPECT_GT(result.plain_mean->values, 0.5);
  }
  const SharedResult plain = fill(*source, {.scheme = "gqa", .size = 3, .pooling = Pooling::kMean});
  EXPECT_THAT(plain.groups, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5)));
  EXPECT_NEAR(plain.error.scores, plain.plain_mean->scores, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Positions, HiddenGroups, testing::Bool(),
                         [](const auto& one) { return one.param ? "rotary" : "none"; });

TEST(SharedMaps, LeastSquaresIsTheBestThereIs) {
  at::manual_seed(5);
  const HeadSlices heads{at::randn({1, 6, 16, 4}, at::kDouble), at::randn({1, 6, 16, 4}, at::kDouble)};
  const SharedMaps best = pooled(heads, 2, 4, Pooling::kLeastSquares);
  const double error = relative_change(heads, expanded(best));
  // The tail of the singular values of the heads of a group, one below the other.
  const Tensor products = heads.query.matmul(heads.key.mT())[0].view({2, 3 * 16, 16});
  const Tensor tail = at::linalg_svdvals(products).slice(1, 4).square().sum() / products.square().sum();
  EXPECT_NEAR(error, std::sqrt(tail.item<double>()), 1e-9);
  const double aligned = relative_change(heads, expanded(pooled(heads, 2, 4, Pooling::kAligned)));
  const double plain = relative_change(heads, expanded(pooled(heads, 2, 4, Pooling::kMean)));
  EXPECT_LT(error, aligned);
  EXPECT_LT(aligned, plain);
}

// The change of what each head gives for two inputs, by drawing them, is what the errors are about.
TEST(SharedMaps, ASampleWeighsErrorsByWhatLayersRead) {
  at::manual_seed(7);
  const std::shared_ptr<Scheme> source = hidden_groups(mha_options(false), {0, 1, 2, 3, 4, 5});
  const HeadMaps maps = head_maps(*source, "layer 1");
  const Tensor x = at::randn({20000, 16}, at::kDouble) * at::linspace(0.1, 3, 16, at::kDouble) + 0.5;
  MomentSums sums;
  sums.add(x);
  const Moments moments = sums.moments();
  const std::shared_ptr<Scheme> target =
      make_scheme(converted_options(source->options(), {.scheme = "mqa"}, /*biased=*/false));
  const SharedResult result = fill_shared({.maps = maps, .inputs = {&moments, &moments}}, target.get());
  const HeadMaps after = head_maps(*target, "layer 1");
  const Tensor y = x.slice(0, 10000) - x.mean(0, true);
  const auto scores = [&](const HeadMaps& m) {
    const Tensor queries = x.slice(0, 0, 10000).matmul(m.query);  // [H, N, D]
    return (queries * y.matmul(m.key)).sum(2);
  };
  const Tensor before = scores(maps);
  const double measured = ((scores(after) - before).square().sum() / before.square().sum()).sqrt().item<double>();
  EXPECT_NEAR(result.error.scores, measured, 0.03 * measured);
}

// Every pair of tokens of a sample in which one direction hardly varies and one not at all: errors are those of the
// sample, and hold nothing that only makes the problem solvable.
TEST(SharedMaps, ErrorsAreTheSamplesOwn) {
  at::manual_seed(9);
  const std::shared_ptr<Scheme> source = hidden_groups(mha_options(false), {0, 1, 2, 3, 4, 5});
  const HeadMaps maps = head_maps(*source, "layer 1");
  Tensor spread = at::logspace(-3, 0.5, 16, 10, at::kDouble);
  spread[3] = 0;
  const Tensor x = at::randn({30, 16}, at::kDouble) * spread + 0.5;
  MomentSums sums;
  sums.add(x);
  const Moments moments = sums.moments();
  const auto scores = [&](const HeadMaps& m) {
    return x.matmul(m.query).matmul((x - x.mean(0, true)).matmul(m.key).transpose(1, 2));  // [H, N, N]
  };
  const auto change = [](const Tensor& before, const Tensor& after) {
    return (at::linalg_vector_norm(after - before) / at::linalg_vector_norm(before)).item<double>();
  };
  const std::shared_ptr<Scheme> shared =
      make_scheme(converted_options(source->options(), {.scheme = "mqa"}, /*biased=*/false));
  const SharedResult result = fill_shared({.maps = maps, .inputs = {&moments, &moments}}, shared.get());
  const HeadMaps after = head_maps(*shared, "layer 1");
  const auto values = [&](const HeadMaps& m) { return x.matmul(m.value).matmul(m.output); };
  EXPECT_NEAR(result.error.scores, change(scores(maps), scores(after)), 1e-9);
  EXPECT_NEAR(result.error.values, change(values(maps), values(after)), 1e-9);
  // The same weights as another call of fill_shared would store, before they are rounded to float32.
  const SharedResult aligned =
      fill_shared({.maps = maps, .inputs = {&moments, &moments}, .pooling = Pooling::kAligned}, shared.get());
  EXPECT_NEAR(result.aligned_mean->scores, aligned.error.scores, 1e-5);
  EXPECT_NEAR(result.aligned_mean->values, aligned.error.values, 1e-5);

  const std::shared_ptr<Scheme> narrow = make_scheme(collaborative_options(source->options(), 10, {}));
  const double error = fill_collaborative(maps, {&moments, &moments}, {}, nullptr, narrow.get()).error;
  EXPECT_NEAR(error, change(scores(maps), scores(head_maps(*narrow, "layer 1"))), 1e-6);
}

// Exchanges save nearly all of what the best of all groupings saves.
TEST(SimilarHeads, AreNearlyAsGoodAsTheBestOfAllGroupings) {
  at::manual_seed(11);
  double saved = 0, possible = 0;
  for (int draw = 0; draw < 20; ++draw) {
    const Tensor half = at::rand({6, 6}, at::kDouble);
    const Tensor losses = half + half.t();
    const auto total = [&](const std::vector<int64_t>& order) {
      double sum = 0;
      for (size_t i = 0; i < 6; i += 2) sum += losses[order[i]][order[i + 1]].item<double>();
      return sum;
    };
    std::vector<int64_t> order(6);
    std::iota(order.begin(), order.end(), 0);
    const double first = total(order);
    double best = first;
    while (std::next_permutation(order.begin(), order.end())) best = std::min(best, total(order));
    const double found = total(similar_heads(losses, 3));
    EXPECT_LE(found, first);
    saved += first - found;
    possible += first - best;
  }
  EXPECT_GT(saved, 0.9 * possible);
}

TEST(SharedHeadsModel, EncodersAndNarrowHeadsAreConverted) {
  EncoderOptions options = small_encoder_options("mha");
  options.attention.key_width = 8;
  options.attention.scale = 0.7;
  options.attention.projection_bias = true;
  const Encoder source = small_encoder(options);
  randomise(*source);
  for (const auto& one : conversion_records()) {
    const std::string& scheme = one->scheme;
    SharedHeadsReport report;
    const Encoder target =
        to_shared(source, {.to = {.scheme = scheme}, .sample = random_ids(4, 10, 13)}, nullptr, &report);
    EXPECT_EQ(target->options().attention.scale, 0.7) << scheme;
    EXPECT_GT(report.change.divergence, 0) << scheme;
    EXPECT_FALSE(report.layers[0].result.plain_mean) << scheme;  // keys and values differ in width
    expect_counted(target);
  }
}

TEST(SharedHeadsModel, WhatCannotBeIsRefused) {
  SharedHeadsReport report;
  const auto convert = [&](const std::string& scheme, PositionKind positions, const SharedScheme& to,
                           void (*change)(DecoderOptions*) = nullptr) {
    DecoderOptions options = small_options(scheme, positions);
    if (change != nullptr) change(&options);
    SharedHeadsOptions sharing;
    sharing.to = to;
    shared(small_decoder(options), sharing, &report);
  };
  const auto says = [&](const std::string& words, auto... arguments) {
    try {
      convert(arguments...);
      ADD_FAILURE() << "no error: " << words;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(words));
    }
  };
  const PositionKind learned = PositionKind::kLearned;
  says("3 groups do not divide", "mha", learned, SharedScheme{"gqa", 3});
  says("mqa has no size that can be chosen; leave 2 out", "mha", learned, SharedScheme{"mqa", 2});
  says("one head", "sha", learned, SharedScheme{"mqa"});
  says("qk-norm", "mha", learned, SharedScheme{"mqa"}, [](DecoderOptions* o) { o->attention.qk_norm = true; });
  says("output-gate", "mha", learned, SharedScheme{"mqa"},
       [](DecoderOptions* o) { o->attention.gate = OutputGate::kHead; });
  says("attention-sinks", "mha", learned, SharedScheme{"mqa"}, [](DecoderOptions* o) { o->attention.sinks = true; });
  says("token before (kv-shift, key-offset)", "mha", learned, SharedScheme{"mqa"},
       [](DecoderOptions* o) { o->attention.kv_shift = true; });
  says("turn the values of skv", "skv", PositionKind::kRotary, SharedScheme{"mqa"}, [](DecoderOptions* o) {
    Fields list = fields(o->attention);
    set_field(list, "skv-rotary", "counter", "a test");
  });
  says("rotary-dimensions", "mha", PositionKind::kRotary, SharedScheme{"mqa"},
       [](DecoderOptions* o) { o->attention.rotary_dimensions = 2; });
  const auto narrow = [](DecoderOptions* o) { o->attention.key_width = 8; };
  says("cannot be pooled", "mha", learned, SharedScheme{"mqa", {}, Pooling::kMean}, narrow);
  says("convert the model that it was made from", "collaborative", PositionKind::kRotary, SharedScheme{"mqa"},
       [](DecoderOptions* o) { o->attention.key_width = 4; });
  says("only where these are as wide as values", "mha", PositionKind::kRotary, SharedScheme{"mqa"}, narrow);
}

TEST(SharedHeadsModel, AnEncoderDecoderHasOneSizeForAllLayers) {
  const EncoderDecoder source = random_translator("mha", "mha", PositionKind::kLearned);
  for (const SizeChoice& sizes : {SizeChoice{.mean = 4}, SizeChoice{.max_error = 0.1}}) {
    SharedHeadsReport report;
    const SharedHeadsOptions options{.to = {.scheme = "mla"}, .sizes = sizes};
    EXPECT_THAT(error_message([&] { to_shared(source, options, nullptr, &report); }), HasSubstr("(--to mla:WIDTH)"));
  }
}

// A scheme whose heads share in a way that trained ones are not made to, added ones too.
TEST(SharedHeadsModel, SchemesWithoutAConversionAreRefused) {
  SchemeRecord twin = scheme_record("mha");
  twin.name = "twin";
  const AddedScheme added(twin);
  const Decoder source = small_decoder(small_options("mha"));
  for (const std::string scheme : {"mha", "sha", "el_shared", "el_lossless", "collaborative", "twin", "nothing"}) {
    SharedHeadsReport report;
    const SharedHeadsOptions options{.to = {.scheme = scheme}};
    EXPECT_THAT(error_message([&] { to_shared(source, options, nullptr, &report); }),
                HasSubstr("cannot be converted to '" + scheme +
                          "'; choose gqa, mqa, mhe_mul, mhe_add, skv, lrkv, "
                          "shared_query or mla"));
  }
  EXPECT_THAT(error_message([] { conversion_record("mhe_mull"); }), HasSubstr("did you mean 'mhe_mul'?"));
  EXPECT_EQ(conversion_record("MHE-Mul").scheme, "mhe_mul");
}

// The offset of embeddings is kept: a layer of offset 0 becomes one of offset 0.
TEST(SharedHeadsModel, TheOffsetOfMheMulIsThatOfTheSource) {
  AttentionOptions source{.scheme = "skv", .d_model = 16, .heads = 4, .own = MheMulOptions{.offset = 0}};
  Fields list = fields(source);
  set_field(list, "shared-qk", "true", "a test");
  AttentionOptions target = converted_options(resolve(source), {.scheme = "mhe_mul"}, /*biased=*/false);
  const nlohmann::json written = to_json(fields(target));
  EXPECT_EQ(written.at("mhe-mul-offset"), 0);
  EXPECT_EQ(written.at("mhe-deviation"), 0.5);
  EXPECT_EQ(written.at("shared-qk"), false);
}

}  // namespace share_model_test
}  // namespace headshare
