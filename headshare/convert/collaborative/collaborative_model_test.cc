#include "headshare/convert/collaborative/collaborative_model.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/attention/schemes/collaborative.h"
#include "headshare/base/testing.h"
#include "headshare/convert/collaborative/widths.h"
#include "headshare/convert/exact/exact_model.h"
#include "headshare/convert/shared_heads/shared_heads_model.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

struct Case {
  std::string name;
  DecoderOptions options;
};

// These layers have heads to share: every scheme and kind of position, with biases and without.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string scheme : {"mha", "gqa", "mqa", "skv", "el_shared", "mhe_add", "mhe_mul"}) {
    for (const PositionKind positions : {PositionKind::kLearned, PositionKind::kRotary, PositionKind::kAlibi}) {
      if (!supports(scheme, positions)) continue;
      for (const bool biases : {false, true}) {
        DecoderOptions options = small_options(scheme, positions);
        options.attention.projection_bias = options.attention.content_bias = biases;
        all.push_back({scheme + "_" + position_name(positions) + (biases ? "_biases" : ""), options});
      }
    }
  }
  DecoderOptions scaled = small_options("mha", PositionKind::kRotary);
  scaled.attention.rotary_scaling = {
      .kind = RotaryScalingKind::kYarn, .factor = 4, .original_context = 16, .attention_factor = 1.5};
  all.push_back({"scaled_rotation", scaled});
  DecoderOptions narrow = small_options("mha");
  narrow.attention.key_width = 8;
  narrow.attention.scale = 0.7;
  all.push_back({"narrow", narrow});
  DecoderOptions wide = small_options("mha");  // heads wider than the model have fewer directions than dimensions
  wide.attention.heads = 2;
  wide.attention.head_width = 32;
  all.push_back({"wide", wide});
  return all;
}

Decoder random_decoder(const DecoderOptions& options) {
  Decoder model = small_decoder(options);
  randomise(*model);
  return model;
}

Decoder converted(const Decoder& source, const CollaborativeHeadsOptions& options, CollaborativeHeadsReport* report) {
  return to_collaborative(source, options, nullptr, report);
}

double largest_difference(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

Tensor logits(const Decoder& model) {
  const at::NoGradGuard no_grad;
  return model->logits(model->hidden(random_ids(3, 10, 13)));
}

Tensor logits(const EncoderDecoder& model) {
  const at::NoGradGuard no_grad;
  const EncodedSource source = model->encode({.ids = random_ids(3, 7, 13)});
  return model->logits(model->hidden(random_ids(3, 10, 13, /*seed=*/2), source));
}

class ToCollaborative : public testing::TestWithParam<Case> {};

TEST_P(ToCollaborative, IsExactAtFullWidth) {
  const Decoder source = random_decoder(GetParam().options);
  CollaborativeHeadsReport report;
  const int64_t full = full_key_width(source->options().attention);
  const Decoder target = converted(source, {.width = {.key_width = full}}, &report);
  EXPECT_LT(largest_difference(logits(source), logits(target)), 2e-4);
  EXPECT_EQ(target->options().attention.scale, source->options().attention.scale);
  EXPECT_EQ(target->options().attention.scheme, "collaborative");
  expect_counted(target);
  ASSERT_EQ(report.layers.size(), 2U);
  EXPECT_LT(report.layers[0].error, 1e-6);
}

// The relative change of what each query and key give, computed from both layers' heads.
TEST_P(ToCollaborative, ReportsTheErrorOfTheScores) {
  const Decoder source = random_decoder(GetParam().options);
  CollaborativeHeadsReport report;
  const int64_t width = full_key_width(source->options().attention) / 2;
  const Decoder target = converted(source, {.width = {.key_width = width}}, &report);
  for (size_t layer = 0; layer < 2; ++layer) {
    const HeadMaps before = head_maps(source->attention(layer)->scheme(), "source");
    const HeadMaps after = head_maps(target->attention(layer)->scheme(), "target");
    const bool rotary = GetParam().options.positions == PositionKind::kRotary;
    // With rotary positions a pair of dimensions is one complex number, and each frequency counts by itself.
    const int64_t period = rotary ? *target->options().attention.own.get<CollaborativeOptions>().rotary_width : 0;
    const auto products = [&](const HeadMaps& m) {
      const auto augmented = [&](const Tensor& maps, const Tensor& bias) {
        return rotary ? at::cat({maps, bias.unsqueeze(1)}, 1) : maps;
      };
      const Tensor q = augmented(m.query, m.query_bias);
      const Tensor k = augmented(m.key, m.key_bias);
      if (!rotary) return q.matmul(k.transpose(1, 2)).unsqueeze(0);
      const auto turning = [&](const Tensor& x) {
        const int64_t half = x.size(2) / 2;
        return at::complex(x.slice(2, 0, half).contiguous(), x.slice(2, half).contiguous())
            .view({x.size(0), x.size(1), -1, period / 2})
            .permute({3, 0, 1, 2});
      };
      return turning(q).matmul(at::adjoint(turning(k)));
    };
    const Tensor change = at::linalg_vector_norm(products(after) - products(before));
    const Tensor of = at::linalg_vector_norm(products(before));
    EXPECT_NEAR(report.layers[layer].error, (change / of).item<double>(), 1e-5);
  }
}

TEST_P(ToCollaborative, KeepsWhatItCanWithASample) {
  const Decoder source = random_decoder(GetParam().options);
  const Tensor sample = random_ids(40, 10, 13, /*seed=*/5);
  const int64_t width = full_key_width(source->options().attention) / 2;
  CollaborativeHeadsReport blind, shown;
  const DecompositionOptions short_work{.iterations = 10};
  converted(source, {.width = {.key_width = width}, .decomposition = short_work, .sample = sample}, &shown);
  converted(source, {.width = {.key_width = width}, .decomposition = short_work}, &blind);
  EXPECT_EQ(blind.layers[0].output_change, -1);
  EXPECT_GT(shown.layers[0].output_change, 0);
  EXPECT_GT(shown.change.divergence, 0);
  EXPECT_LT(shown.layers[0].output_change, 1);
}

// One token after the other from the cache, as one pass over all.
TEST_P(ToCollaborative, DecodesFromItsCache) {
  const at::NoGradGuard no_grad;
  const Decoder source = random_decoder(GetParam().options);
  CollaborativeHeadsReport report;
  const int64_t width = full_key_width(source->options().attention) / 2;
  const Decoder target =
      converted(source, {.width = {.key_width = width}, .decomposition = {.iterations = 3}}, &report);
  const Tensor ids = random_ids(2, 10, 13);
  DecodingState state = target->new_state(10);
  std::vector<Tensor> steps;
  for (int64_t t = 0; t < 10; ++t) steps.push_back(target->hidden(ids.slice(1, t, t + 1), &state));
  EXPECT_LT(largest_difference(target->hidden(ids), at::cat(steps, 1)), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Schemes, ToCollaborative, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case>& one) { return one.param.name; });

TEST(CollaborativeModel, EncodersStayExact) {
  for (const PositionKind positions : {PositionKind::kLearned, PositionKind::kRotary}) {
    Encoder source = small_encoder(small_encoder_options("mha", positions));
    randomise(*source);
    CollaborativeHeadsReport report;
    const Encoder target =
        to_collaborative(source, {.width = {.key_width = 16}, .sample = random_ids(8, 10, 13)}, nullptr, &report);
    const at::NoGradGuard no_grad;
    const EncoderInput input{.ids = random_ids(3, 10, 13)};
    EXPECT_LT(largest_difference(source->hidden(input), target->hidden(input)), 1e-4);
    EXPECT_LT(report.change.divergence, 1e-6);
    EXPECT_LT(report.change.hidden, 1e-4);
    expect_counted(target);
  }
}

// Self-attention of both sides and cross-attention, of equal and of different schemes.
TEST(CollaborativeModel, EncoderDecodersStayExact) {
  for (const PositionKind positions : {PositionKind::kSinusoidal, PositionKind::kRotary}) {
    for (const std::string cross : {"mha", "mqa"}) {
      const EncoderDecoder source = random_translator("mha", cross, positions);
      CollaborativeHeadsReport report;
      const EncoderDecoder target = to_collaborative(source, {.width = {.key_width = 16}}, nullptr, &report);
      EXPECT_LT(largest_difference(logits(source), logits(target)), 2e-4);
      EXPECT_EQ(target->options().sites->cross.scheme, "collaborative");
      EXPECT_EQ(target->options().sites->cross.scale, source->options().sites->cross.scale);
      ASSERT_EQ(report.layers.size(), 6U);
      EXPECT_EQ(report.layers[2].layer, "decoder layer 1");
      EXPECT_EQ(report.layers[3].layer, "cross-attention layer 1");
      for (const LayerReport& layer : report.layers) EXPECT_LT(layer.error, 1e-6) << layer.layer;
      const TemporaryDirectory directory;
      save_model(directory.path() / "m", target, TokenizerPair{});
      EXPECT_TRUE(at::equal(logits(load_encoder_decoder(directory.path() / "m")), logits(target)));
    }
  }
}

TEST(CollaborativeModel, EncoderDecodersBecomeNarrower) {
  const EncoderDecoder source = random_translator("mha", "mha");
  CollaborativeHeadsReport report;
  const EncoderDecoder target = to_collaborative(source, {.width = {.key_width = 6}}, nullptr, &report);
  EXPECT_EQ(*target->options().sites->decoder.key_width, 6);
  EXPECT_LT(measure(target->options()).attention_parameters, measure(source->options()).attention_parameters);
  for (const LayerReport& layer : report.layers) EXPECT_GT(layer.error, 0.01) << layer.layer;
  EXPECT_THAT(error_message([&] { to_collaborative(source, {.width = {.max_error = 0.1}}, nullptr, &report); }),
              HasSubstr("one key width for all layers: give --key-width"));
  const at::NoGradGuard no_grad;
  source->decoder()->block(1)->cross_attention->scheme().named_parameters()["key.weight"][0][0] = std::nan("");
  EXPECT_THAT(error_message([&] { to_collaborative(source, {.width = {.key_width = 8}}, nullptr, &report); }),
              HasSubstr("cross-attention layer 2: 1 of 256 values of key.weight"));
}

// Makes a model of images of 8 x 8 pixels in 4 patches.
VisionTransformer random_vision_transformer() {
  VisionOptions options;
  options.layers = 2;
  options.attention.d_model = 16;
  options.attention.heads = 4;
  options.image_size = 8;
  options.patch_size = 4;
  options.classes = 5;
  VisionTransformer model(resolve(options));
  randomise(*model);
  model->eval();
  return model;
}

// The full key width computes the same, a narrower one about that.
TEST(CollaborativeModel, VisionTransformersAreConvertedByTheirWeights) {
  const VisionTransformer source = random_vision_transformer();
  const at::NoGradGuard no_grad;
  const Tensor pixels = random_tensor({3, 3, 8, 8}, 4, at::kFloat, 1), before = source->scores(pixels);
  CollaborativeHeadsReport report;
  const VisionTransformer whole = to_collaborative(source, {.width = {.key_width = 16}}, nullptr, &report);
  EXPECT_LT((whole->scores(pixels) - before).abs().max().item<double>(), 1e-3 * before.abs().max().item<double>());
  const VisionTransformer narrow = to_collaborative(source, {.width = {.mean_key_width = 8}}, nullptr, &report);
  EXPECT_EQ(report.layers.size(), 4u);
  EXPECT_LT(measure(narrow->options()).attention_parameters, measure(whole->options()).attention_parameters);
  EXPECT_TRUE(narrow->scores(pixels).isfinite().all().item<bool>());
  SharedHeadsReport shared;
  const VisionTransformer one_key = to_shared(source, {.to = {.scheme = "mqa"}}, nullptr, &shared);
  EXPECT_EQ(one_key->options().attention.scheme, "mqa");
  const AnyModel original{.options = source->options(), .module = source.ptr()};
  ExactReport folded;
  const AnyModel back =
      fold_exactly({.options = one_key->options(), .module = one_key.ptr()}, {.scheme = "mha"}, false, &folded);
  EXPECT_LT(folded.in_double, 1e-12);
  EXPECT_GT(relative_change(original, back), 1e-3);  // mqa is no exact form of heads apart
}

// With images as the sample, the first layer changes least on what it reads there, and changes are told. At the full
// width nothing changes.
TEST(CollaborativeModel, ImagesAreASampleOfVisionTransformers) {
  const VisionTransformer source = random_vision_transformer();
  const at::NoGradGuard no_grad;
  // Images of one colour each: all patches of an image are alike, and vary along three directions.
  const Tensor pixels = random_tensor({40, 3, 1, 1}, 4, at::kFloat, 1).expand({40, 3, 8, 8}).contiguous();
  const auto first_change = [&](const VisionTransformer& target) {
    return output_changes(source, target, pixels).front();
  };
  CollaborativeHeadsReport blind, shown, same;
  const VisionTransformer by_weights = to_collaborative(source, {.width = {.key_width = 4}}, nullptr, &blind);
  const VisionTransformer by_images =
      to_collaborative(source, {.width = {.key_width = 4}, .sample = pixels}, nullptr, &shown);
  EXPECT_EQ(blind.layers[0].output_change, -1);
  EXPECT_EQ(blind.change.hidden, -1);
  EXPECT_LT(first_change(by_images), first_change(by_weights) / 2);
  EXPECT_DOUBLE_EQ(shown.layers[0].output_change, first_change(by_images));
  EXPECT_GT(shown.change.hidden, 0);
  const Tensor p = source->scores(pixels).to(at::kDouble).softmax(1);
  const Tensor q = by_images->scores(pixels).to(at::kDouble).softmax(1);
  EXPECT_NEAR(shown.change.divergence, (p * (p / q).log()).sum(1).mean().item<double>(), 1e-9);
  to_collaborative(source, {.width = {.key_width = 16}, .sample = pixels}, nullptr, &same);
  EXPECT_LT(same.layers[1].output_change, 1e-3);
  EXPECT_LT(same.change.divergence, 1e-5);
  SharedHeadsReport shared;
  to_shared(source, {.to = {.scheme = "mqa"}, .sample = pixels}, nullptr, &shared);
  EXPECT_GT(shared.layers[0].output_change, 0);
  EXPECT_GT(shared.change.divergence, 0);
}

TEST(CollaborativeModel, WidthsMayDifferAndAreKept) {
  const Decoder source = random_decoder(small_options("mha"));
  CollaborativeHeadsReport report;
  const Decoder target = converted(source, {.width = {.max_error = 0.3}}, &report);
  for (const LayerReport& layer : report.layers) {
    EXPECT_LE(layer.error, 0.3);
    EXPECT_LT(layer.key_width, 16);
  }
  expect_counted(target);
  const TemporaryDirectory directory;
  save_model(directory.path() / "m", target, nullptr);
  EXPECT_TRUE(at::equal(logits(load_decoder(directory.path() / "m")), logits(target)));
}

TEST(CollaborativeModel, ALimitOnParametersIsKeptAndUsed) {
  const Decoder source = random_decoder(small_options("mha"));
  const int64_t before = measure(source->options()).total_parameters;
  CollaborativeHeadsReport report;
  const Decoder target = converted(source, {.width = {.max_parameters = before - 500}}, &report);
  const int64_t after = measure(target->options()).total_parameters;
  EXPECT_LE(after, before - 500);
  EXPECT_GT(after, before - 500 - 2 * (2 * 16 + 4));  // not a step of width would have fitted in both layers
  EXPECT_THROW(converted(source, {.width = {.max_parameters = 1000}}, &report), Error);
}

// Both layers have the same heads, but one has ten times the scores: softmax sees ten times its error.
TEST(CollaborativeModel, ABudgetGoesWhereScoresAreLarge) {
  for (const PositionKind positions : {PositionKind::kLearned, PositionKind::kRotary}) {
    const Decoder source = random_decoder(small_options("mha", positions));
    {
      const at::NoGradGuard no_grad;
      auto large = source->attention(0)->scheme().named_parameters();
      for (const auto& one : source->attention(1)->scheme().named_parameters()) large[one.key()].copy_(one.value());
      large["query.weight"].mul_(10);
    }
    CollaborativeHeadsReport report;
    const int64_t half = measure(converted(source, {.width = {.key_width = 8}}, &report)->options()).total_parameters;
    report = {};
    converted(source, {.width = {.max_parameters = half}}, &report);
    EXPECT_GT(report.layers[0].key_width, report.layers[1].key_width) << position_name(positions);
    EXPECT_EQ(report.layers[0].key_width + report.layers[1].key_width, 16) << position_name(positions);
    const int64_t wide = report.layers[0].key_width;
    report = {};
    converted(source, {.width = {.mean_key_width = 8}}, &report);
    EXPECT_EQ(report.layers[0].key_width, wide);
    EXPECT_EQ(report.layers[1].key_width, 16 - wide);
  }
}

// The one layer is decomposed once, by what it reads at all depths.
TEST(CollaborativeModel, ASharedLayerIsDecomposedOnce) {
  DecoderOptions options = small_options("mha");
  options.layers = 4;
  options.layer_groups = 1;
  const Decoder source = random_decoder(options);
  const Tensor sample = random_ids(6, 10, 13, /*seed=*/5);
  CollaborativeHeadsReport report;
  const Decoder target = converted(source, {.width = {.key_width = 8}, .sample = sample}, &report);
  expect_counted(target);
  EXPECT_EQ(target->layers(), 1U);
  EXPECT_EQ(target->depth(), 4U);
  ASSERT_EQ(report.layers.size(), 1U);
  double change = 0, of = 0;
  int seen = 0;
  source->attention(0)->observe([&](const Tensor& x, const HeadMask& mask, const Tensor& output) {
    change += (target->attention(0)->self(x, mask) - output).square().sum(at::kDouble).item<double>();
    of += output.square().sum(at::kDouble).item<double>();
    ++seen;
  });
  const at::NoGradGuard no_grad;
  source->hidden(sample);
  source->attention(0)->observe(nullptr);
  EXPECT_EQ(seen, 4);
  EXPECT_NEAR(report.layers[0].output_change, std::sqrt(change / of), 1e-6);

  const Decoder whole = converted(source, {.width = {.key_width = 16}}, &report);
  EXPECT_LT(largest_difference(logits(source), logits(whole)), 2e-4);
  const int64_t most = measure(source->options()).total_parameters - 200;
  const int64_t left =
      measure(converted(source, {.width = {.max_parameters = most}}, &report)->options()).total_parameters;
  EXPECT_LE(left, most);
  EXPECT_GT(left, most - 2 * (2 * 16 + 4));
}

TEST(CollaborativeModel, RefusesWhatCannotBe) {
  CollaborativeHeadsReport report;
  const auto refused = [&](const DecoderOptions& options, int64_t width, const std::string& says) {
    const Decoder source = random_decoder(options);
    EXPECT_THAT(error_message([&] { converted(source, {.width = {.key_width = width}}, &report); }), HasSubstr(says));
  };
  refused(small_options("mha"), 17, "17 is not within 1..16");
  refused(small_options("mha"), 0, "0 is not within 1..16");
  refused(small_options("mha", PositionKind::kRotary), 6, "must be a multiple of 4");
  refused(small_options("sha"), 4, "one head");
  refused(small_options("el_lossless"), 4, "whole hidden states");
  refused(small_options("collaborative"), 8, "collaborative already, with key width 8");
  DecoderOptions normed = small_options("mha");
  normed.attention.qk_norm = true;
  refused(normed, 8, "normed queries and keys");
  const Decoder broken = random_decoder(small_options("mha"));
  {
    const at::NoGradGuard no_grad;
    broken->attention(1)->scheme().named_parameters()["key.weight"][0][0] = std::nan("");
  }
  EXPECT_THAT(error_message([&] { converted(broken, {.width = {.key_width = 8}}, &report); }),
              HasSubstr("layer 2: 1 of 256 values of key.weight"));
}

TEST(CollaborativeModel, CollaborativeModelsBecomeNarrower) {
  DecoderOptions options = small_options("collaborative");
  options.layer_key_widths = {16, 12};
  const Decoder source = random_decoder(options);
  CollaborativeHeadsReport report;
  EXPECT_EQ(*converted(source, {.width = {.key_width = 8}}, &report)->options().attention.key_width, 8);
  const auto refusal = [&](const WidthChoice& width) {
    return error_message([&] { converted(source, {.width = width}, &report); });
  };
  EXPECT_THAT(refusal({.key_width = 12}), HasSubstr("collaborative already, with key width 12"));
  EXPECT_THAT(refusal({.max_error = 0.1}), HasSubstr("give a smaller --key-width"));
  const Decoder turned = random_decoder(small_options("collaborative", PositionKind::kRotary));
  EXPECT_THAT(error_message([&] { converted(turned, {.width = {.key_width = 4}}, &report); }),
              HasSubstr("convert the model that it was made from"));
  // A converted model can be converted again.
  const Decoder once =
      converted(random_decoder(small_options("mha", PositionKind::kRotary)), {.width = {.key_width = 12}}, &report);
  const Decoder again = converted(once, {.width = {.key_width = 8}}, &report);
  EXPECT_EQ(again->options().attention.own.get<CollaborativeOptions>().rotary_width, 4);
}

TEST(CollaborativeModel, ATextThatNeverVariesIsASampleToo) {
  const Decoder source = random_decoder(small_options("mha", PositionKind::kAlibi));
  CollaborativeHeadsReport report;
  const Decoder target =
      converted(source, {.width = {.key_width = 8}, .sample = at::ones({3, 10}, at::kLong)}, &report);
  EXPECT_TRUE(at::isfinite(logits(target)).all().item<bool>());
}

TEST(CollaborativeModel, AStopLeavesAWholeModel) {
  const Decoder source = random_decoder(small_options("mha"));
  CollaborativeHeadsReport report;
  int64_t calls = 0;
  const Decoder target = to_collaborative(
      source, {.width = {.key_width = 8}}, [&](const ConversionProgress&) { return ++calls < 3; }, &report);
  EXPECT_TRUE(report.stopped);
  EXPECT_EQ(report.layers[0].errors.size(), 4U);
  EXPECT_EQ(report.layers[1].errors.size(), 1U);
  EXPECT_TRUE(at::isfinite(logits(target)).all().item<bool>());
}

TEST(Widths, AreTheLeastWithinAnErrorOrABudget) {
  EXPECT_EQ(tried_widths(16, 1, 4), (std::vector<int64_t>{4, 8, 12, 16}));
  EXPECT_EQ(tried_widths(16, 8, 16), (std::vector<int64_t>{8, 16}));
  const std::vector<int64_t> widths = {4, 8, 12, 16};
  const auto error = [](int64_t width) { return 1.0 - static_cast<double>(width) / 16; };
  EXPECT_EQ(width_within(widths, 0.3, error), 12);
  EXPECT_EQ(width_within(widths, 1, error), 4);
  EXPECT_EQ(width_within(widths, 0, error), 16);
  // The second layer gains more from its first step, then the first layer does.
  const std::vector<std::vector<double>> errors = {{0.5, 0.2, 0.1, 0}, {0.8, 0.1, 0.09, 0}};
  std::vector<std::pair<size_t, int64_t>> asked;
  const auto in_budget = [&](int64_t budget) {
    asked.clear();
    const auto error_at = [&](size_t layer, int64_t width) {
      asked.emplace_back(layer, width);
      return errors[layer][static_cast<size_t>(width / 4 - 1)];
    };
    return widths_in_budget(widths, 2, error_at, 10, budget);
  };
  EXPECT_THAT(in_budget(80), testing::ElementsAre(4, 4));
  EXPECT_TRUE(asked.empty());  // nothing can grow
  EXPECT_THAT(in_budget(125), testing::ElementsAre(4, 8));
  using Asked = std::pair<size_t, int64_t>;
  EXPECT_THAT(asked, testing::UnorderedElementsAre(Asked(0, 4), Asked(0, 8), Asked(1, 4), Asked(1, 8)));
  EXPECT_THAT(in_budget(160), testing::ElementsAre(8, 8));
}

}  // namespace
}  // namespace headshare
