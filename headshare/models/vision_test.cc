#include "headshare/models/vision.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/attention/schemes/mhe_options.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/testing.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/testing.h"
#include "headshare/ops/precision.h"

namespace headshare {
namespace {

namespace vision_test {

using testing::HasSubstr;

// Returns options with 2 layers, 4 heads, width 16, images of 8 x 8 pixels of 2 channels in 4 patches, 5 classes.
VisionOptions small_vision(const std::string& scheme) {
  VisionOptions options;
  options.layers = 2;
  options.attention.scheme = scheme;
  options.attention.d_model = 16;
  options.attention.heads = 4;
  options.image_size = 8;
  options.patch_size = 4;
  options.channels = 2;
  options.classes = 5;
  return options;
}

VisionTransformer made_vision(const VisionOptions& options) {
  VisionTransformer model(resolve(options));
  initialise(*model, 1);
  randomise(*model);
  model->eval();
  return model;
}

Tensor some_pixels(int64_t images, int64_t side = 8, int64_t channels = 2) {
  return random_tensor({images, channels, side, side}, 7, at::kFloat, 1);
}

Tensor tensor_of(const VisionTransformer& model, const std::string& name) { return model_tensors(*model).at(name); }

TEST(PatchEmbeddingTest, IsAConvolution) {
  PatchEmbedding embedding(3, 4, 10, Init::normal(0.3));
  initialise(*embedding, 3);
  const Tensor pixels = random_tensor({2, 3, 8, 12}, 5, at::kFloat, 1);
  const NamedTensors tensors = model_tensors(*embedding);
  const Tensor wanted = at::conv2d(pixels, tensors.at("projection.weight").view({10, 3, 4, 4}),
                                   tensors.at("projection.bias"), /*stride=*/4);  // [2, 10, 2, 3]
  const Tensor found = embedding->forward(pixels);
  EXPECT_EQ(found.sizes(), at::IntArrayRef({2, 6, 10}));
  EXPECT_TRUE(at::allclose(found, wanted.flatten(2).transpose(1, 2), 1e-4, 1e-5));
}

// timm's counts are 5,717,416, 22,050,664 and 86,567,656; its distilled tiny model has 5,910,800 with both heads.
TEST(VisionTest, HasTheParametersOfVitAndDeit) {
  struct Row {
    int64_t width, heads, parameters, distilled;
  };
  for (const Row& row :
       {Row{192, 3, 5717416, 5910800}, Row{384, 6, 22050664, 22436432}, Row{768, 12, 86567656, 87338192}}) {
    VisionOptions options;
    options.layers = 12;
    options.attention.d_model = row.width;
    options.attention.heads = row.heads;
    options.classes = 1000;
    const ModelSize size = measure(resolve(options));
    EXPECT_EQ(size.total_parameters, row.parameters);
    EXPECT_EQ(size.attention_parameters, 12 * 4 * row.width * row.width);
    EXPECT_EQ(size.embedding_parameters, 769 * row.width);
    EXPECT_EQ(size.cache_bytes_per_token, 0);
    options.distillation_token = DistillationToken::kWithHead;
    EXPECT_EQ(measure(resolve(options)).total_parameters, row.distilled);
  }
}

class VisionScheme : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(All, VisionScheme, testing::ValuesIn(scheme_names()));

TEST_P(VisionScheme, IsCountedAsItIsMade) {
  VisionOptions options = small_vision(GetParam());
  options.attention.content_bias = true;
  options.distillation_token = DistillationToken::kWithHead;
  expect_counted(made_vision(options));
  options.positions = PositionKind::kSinusoidal;
  options.norms = NormPlacement::kAfter;
  expect_counted(made_vision(options));
}

// The heads read the first tokens; that only these pass the last feed-forward sub-layer changes nothing.
TEST_P(VisionScheme, HeadsReadTheirTokens) {
  const at::NoGradGuard no_grad;
  VisionOptions options = small_vision(GetParam());
  options.distillation_token = DistillationToken::kWithHead;
  VisionTransformer model = made_vision(options);
  const Tensor pixels = some_pixels(3), hidden = model->hidden(pixels);
  EXPECT_EQ(hidden.sizes(), at::IntArrayRef({3, 6, 16}));
  const ClassScores found = model->head_scores(pixels);
  const auto head = [&](const std::string& name, int64_t token) {
    return at::linear(hidden.select(1, token), tensor_of(model, name + ".weight"), tensor_of(model, name + ".bias"));
  };
  EXPECT_TRUE(at::allclose(found.classes, head("head", 0), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(found.distillation, head("distillation_head", 1), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(model->scores(pixels), (head("head", 0) + head("distillation_head", 1)) / 2, 1e-4, 1e-5));
}

TEST_P(VisionScheme, EveryLearnedParameterGetsAGradientAndNoInertOne) {
  VisionOptions options = small_vision(GetParam());
  options.attention.content_bias = true;
  options.distillation_token = DistillationToken::kWithHead;
  VisionTransformer model = made_vision(options);
  model->scores(some_pixels(3)).square().sum().backward();
  for (const Declared& one : declared_parameters(*model)) {
    const Tensor gradient = one.tensor.grad();
    const bool reached = gradient.defined() && gradient.abs().max().item<double>() > 0;
    EXPECT_EQ(reached, one.role == Role::kLearned) << one.name;
    EXPECT_TRUE(!gradient.defined() || gradient.isfinite().all().item<bool>()) << one.name;
  }
}

TEST_P(VisionScheme, LearnsTheSameRecomputed) {
  VisionOptions options = small_vision(GetParam());
  options.dropout = options.attention.attention_dropout = 0.2;
  VisionTransformer model = made_vision(options);
  model->train();
  const auto gradients = [&](bool recompute) {
    model->set_recompute(recompute);
    model->zero_grad();
    model->scores(some_pixels(3)).square().sum().backward();
    NamedTensors found;
    for (const Declared& one : declared_parameters(*model)) {
      if (one.role == Role::kLearned) found[one.name] = one.tensor.grad().clone();
    }
    return found;
  };
  const NamedTensors kept = gradients(false), again = gradients(true);
  for (const auto& [name, gradient] : kept) {
    EXPECT_TRUE(at::allclose(gradient, again.at(name), 1e-4, 1e-5)) << name;
  }
}

TEST(VisionTest, ReadsTheMeanOfThePatches) {
  const at::NoGradGuard no_grad;
  for (const bool class_token : {false, true}) {
    VisionOptions options = small_vision("mha");
    options.pooling = ImagePooling::kMean;
    options.class_token = class_token;
    VisionTransformer model = made_vision(options);
    const Tensor hidden = model->hidden(some_pixels(2));
    EXPECT_EQ(hidden.size(1), class_token ? 5 : 4);
    const Tensor mean = hidden.slice(1, class_token ? 1 : 0).mean(1);
    const Tensor wanted = at::linear(mean, tensor_of(model, "head.weight"), tensor_of(model, "head.bias"));
    EXPECT_TRUE(at::allclose(model->scores(some_pixels(2)), wanted, 1e-4, 1e-5));
  }
}

TEST(VisionTest, InterpolatesPositions) {
  const at::NoGradGuard no_grad;
  const Tensor table = random_tensor({2 + 9, 16}, 3, at::kFloat, 1);
  EXPECT_TRUE(at::equal(interpolated_positions(table, 2, 3, 3), table));
  const Tensor wide = interpolated_positions(table, 2, 3, 6);
  EXPECT_TRUE(at::equal(wide.narrow(0, 0, 2), table.narrow(0, 0, 2)));
  const Tensor grid = table.slice(0, 2).view({3, 3, 16}).permute({2, 0, 1}).unsqueeze(0);
  const Tensor wanted = at::upsample_bicubic2d(grid, {3, 6}, false)[0].permute({1, 2, 0}).reshape({18, 16});
  EXPECT_TRUE(at::allclose(wide.slice(0, 2), wanted));
  // A table that grows along its columns alone does so in any size.
  const Tensor ramp = at::arange(3, at::kFloat).view({1, 3, 1}).expand({3, 3, 1}).reshape({9, 1});
  const Tensor found = interpolated_positions(ramp, 0, 2, 6).view({2, 6});
  EXPECT_TRUE(at::allclose(found[0], found[1]));
  EXPECT_GT(found[0].diff().slice(0, 1, 4).min().item<double>(), 0);
  VisionTransformer model = made_vision(small_vision("mhe_mul"));
  EXPECT_EQ(model->hidden(some_pixels(2, 12)).sizes(), at::IntArrayRef({2, 10, 16}));
  EXPECT_TRUE(model->scores(some_pixels(2, 12)).isfinite().all().item<bool>());
}

TEST(VisionTest, Bf16IsCloseToFp32) {
  const at::NoGradGuard no_grad;
  VisionTransformer model = made_vision(small_vision("mha"));
  const Tensor exact = model->scores(some_pixels(3));
  Tensor half;
  {
    const ComputeIn bf16(Precision::kBf16, at::kCPU);
    half = model->scores(some_pixels(3)).to(at::kFloat);
  }
  EXPECT_LT((half - exact).abs().max().item<double>(), 0.1 * exact.abs().max().item<double>());
  EXPECT_FALSE(at::equal(half, exact));
}

TEST(VisionTest, SchemesShareTheInitialValuesOfWhatTheyShare) {
  expect_shared_starts([](const std::string& scheme) {
    VisionOptions options = small_vision(scheme);
    options.attention.own.get<MheOptions>().deviation = 0.1;  // sums and factors start alike up to a factor
    VisionTransformer model(resolve(options));
    initialise(*model, 1);
    return model;
  });
}

class SavedVision : public testing::Test {
 protected:
  fs::path path() const { return temporary_.path() / "model"; }

  TemporaryDirectory temporary_;
};

TEST_F(SavedVision, ComesBackWithWhatItTellsApart) {
  for (const std::string& scheme : scheme_names()) {
    VisionOptions options = small_vision(scheme);
    options.distillation_token = DistillationToken::kWithoutHead;
    options.images = {.labels = {"a, b", "c", "d", "e", "f"}, .mean = {0.5, 0.25}, .deviation = {0.5, 1}};
    VisionTransformer model = made_vision(options);
    save_model(path(), model, /*tokenizer=*/nullptr);
    EXPECT_GE(read_json_file(path() / "config.json", 1 << 20).at("format_version"), 13);  // later schemes: 14
    const LoadedVision loaded = load_vision_model(path());
    VisionOptions before = model->options(), after = loaded.model->options();
    EXPECT_EQ(to_json(stored_fields(before)), to_json(stored_fields(after)));
    EXPECT_EQ(after.images.labels, options.images.labels);
    EXPECT_EQ(after.images.mean, options.images.mean);
    EXPECT_EQ(after.images.deviation, options.images.deviation);
    EXPECT_EQ(after.context, 6);
    for (const auto& [name, tensor] : model_tensors(*model)) {
      EXPECT_TRUE(at::equal(tensor, tensor_of(loaded.model, name))) << name;
    }
    EXPECT_THAT(error_message([&] { load_decoder(path()); }), HasSubstr("is a vision transformer, which tells"));
    EXPECT_THAT(error_message([&] { load_model(path()); }), HasSubstr("a decoder language model is needed here"));
    fs::remove_all(path());
  }
}

TEST_F(SavedVision, DamagedLabelsAreNamed) {
  save_model(path(), made_vision(small_vision("mha")), /*tokenizer=*/nullptr);
  const nlohmann::json whole = read_json_file(path() / "config.json", 1 << 20);
  const auto refusal = [&](auto change) {
    nlohmann::json config = whole;
    change(config);
    return error_message([&] { options_of_config(config, "config.json"); });
  };
  EXPECT_EQ(refusal([](auto&) {}), "no error");
  EXPECT_THAT(refusal([](auto& c) { c["images"] = 3; }), HasSubstr("images is no JSON object"));
  EXPECT_THAT(refusal([](auto& c) { c["images"].erase("mean"); }), HasSubstr("no list \"mean\""));
  EXPECT_THAT(refusal([](auto& c) { c["images"]["labels"] = {1, 2}; }), HasSubstr("1, which is no text"));
  EXPECT_THAT(refusal([](auto& c) { c["images"]["labels"] = {"a"}; }), HasSubstr("5 classes has 1 labels"));
  EXPECT_THAT(refusal([](auto& c) { c["images"]["mean"] = {"a", 1}; }), HasSubstr("which is no number"));
  EXPECT_THAT(refusal([](auto& c) { c["images"]["mean"] = {0.5}; }), HasSubstr("2 channels has 1 means"));
  EXPECT_THAT(refusal([](auto& c) { c["images"]["deviation"] = {1.0, 0.0}; }), HasSubstr("above 0, not 0"));
}

TEST(VisionTest, RefusesWhatAnImageGivesNoMeaning) {
  const auto refusal = [](auto change) {
    VisionOptions options = small_vision("mha");
    change(options);
    return error_message([&] { resolve(options); });
  };
  EXPECT_THAT(refusal([](auto& o) { o.positions = PositionKind::kRotary; }), HasSubstr("rows and columns"));
  EXPECT_THAT(refusal([](auto& o) { o.positions = PositionKind::kAlibi; }), HasSubstr("rows and columns"));
  EXPECT_THAT(refusal([](auto& o) { o.attention.window = 3; }), HasSubstr("leave --local-window out"));
  EXPECT_THAT(refusal([](auto& o) { o.norms = NormPlacement::kBeforeExceptFirst; }), HasSubstr("--norms pre or post"));
  EXPECT_THAT(refusal([](auto& o) { o.embedding_width = 8; }), HasSubstr("leave --embedding-width out"));
  EXPECT_THAT(refusal([](auto& o) { o.image_size = 10; }), HasSubstr("leaves 2; choose --image-size 8"));
  EXPECT_THAT(refusal([](auto& o) { o.class_token = false; }), HasSubstr("--pooling mean"));
  EXPECT_THAT(refusal([](auto& o) {
                o.distillation_token = DistillationToken::kWithHead;
                o.pooling = ImagePooling::kMean;
              }),
              HasSubstr("--distillation-token none"));
  EXPECT_THAT(refusal([](auto& o) { o.images.labels = {"one"}; }), HasSubstr("5 classes has 1 labels"));
  EXPECT_EQ(refusal([](auto&) {}), "no error");
}

TEST(VisionTest, RefusesImagesThatDoNotFit) {
  VisionTransformer model = made_vision(small_vision("mha"));
  EXPECT_THAT(error_message([&] { model->scores(some_pixels(2, 8, 3)); }),
              HasSubstr("3 channels, and the model reads 2"));
  EXPECT_THAT(error_message([&] { model->scores(some_pixels(2, 10)); }), HasSubstr("resize them to 8 x 8"));
  EXPECT_THAT(error_message([&] { model->scores(some_pixels(2)[0]); }), HasSubstr("[images, channels, rows, columns]"));
  VisionOptions headless = small_vision("mha");
  headless.classes = 0;
  VisionTransformer without = made_vision(headless);
  EXPECT_EQ(without->hidden(some_pixels(2)).size(1), 5);
  EXPECT_THAT(error_message([&] { without->scores(some_pixels(2)); }), HasSubstr("no head"));
}

}  // namespace vision_test

}  // namespace
}  // namespace headshare
