#include "headshare/analyze/seen_images.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/attention/options.h"
#include "headshare/base/strings/base64.h"
#include "headshare/base/testing.h"
#include "headshare/data/images/decode_image.h"
#include "headshare/data/images/test_images.h"
#include "headshare/models/testing.h"
#include "headshare/report/analysis/image_looks.h"

namespace headshare {
namespace {

namespace seen_images_test {

using testing::HasSubstr;

class SeenImagesTest : public testing::Test {
 protected:
  static VisionTransformer model_of(const std::string& scheme, bool class_token = true) {
    VisionOptions options;
    options.layers = 2;
    options.attention.scheme = scheme;
    options.attention.d_model = 16;
    options.attention.heads = 4;
    options.image_size = 12;
    options.patch_size = 4;
    options.class_token = class_token;
    options.pooling = class_token ? ImagePooling::kClassToken : ImagePooling::kMean;
    VisionTransformer model(resolve(options));
    initialise(*model, 1);
    randomise(*model);
    model->eval();
    return model;
  }

  std::string image() const {
    write_file(files_ / "a.png", png_file(random_image(12, 12, 3)));
    return (files_ / "a.png").string();
  }

  TemporaryDirectory files_;
};

TEST_F(SeenImagesTest, WeightsOfEverySchemeSumToOne) {
  for (const std::string& scheme : scheme_names()) {
    const VisionTransformer model = model_of(scheme);
    const std::vector<LookedAtImage> seen = look_at_images(model, {image()});
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(decode_image(from_base64(seen[0].picture, "x"), "x").height, 12);
    ASSERT_EQ(seen[0].layers.size(), 2u) << scheme;
    for (const auto& layer : seen[0].layers) {
      EXPECT_FALSE(layer.empty()) << scheme;
      for (const HeadLook& look : layer) {
        ASSERT_EQ(look.patches.size(), 9u);
        double sum = look.tokens;
        for (const double weight : look.patches) sum += weight;
        EXPECT_NEAR(sum, 1, 1e-5) << scheme;
      }
    }
  }
}

// The first layer of mha again, in plain products.
TEST_F(SeenImagesTest, LooksAreTheClassTokensAttention) {
  const VisionTransformer model = model_of("mha");
  const HeadLook look = look_at_images(model, {image()})[0].layers[0][2];
  Tensor read;
  model->attention(0)->observe([&read](const Tensor& x, const HeadMask&, const Tensor&) { read = x; });
  const at::NoGradGuard no_grad;
  const Image pixels = random_image(12, 12, 3);
  Tensor numbers = at::empty({1, 3, 12, 12});
  for (int64_t channel = 0; channel < 3; ++channel) {
    for (int64_t at = 0; at < 144; ++at) {
      numbers.view({3, 144})[channel][at] = pixels.pixels[static_cast<size_t>(3 * at + channel)] / 255.0;
    }
  }
  model->hidden(numbers);
  model->attention(0)->observe(nullptr);
  const NamedTensors weights = model_tensors(*model);
  const auto project = [&](const std::string& name) {
    const std::string path = "blocks.0.attention.scheme." + name;
    return (at::matmul(read[0], weights.at(path + ".weight").t()) + weights.at(path + ".bias")).slice(1, 8, 12);
  };
  const Tensor wanted = at::softmax(at::matmul(project("query"), project("key").t()) / 2, 1)[0];  // [10]
  EXPECT_NEAR(look.tokens, wanted[0].item<double>(), 1e-5);
  for (int64_t patch = 0; patch < 9; ++patch) {
    EXPECT_NEAR(look.patches[static_cast<size_t>(patch)], wanted[patch + 1].item<double>(), 1e-5);
  }
}

TEST_F(SeenImagesTest, WithoutAClassTokenPatchesLook) {
  const LookedAtImage seen = look_at_images(model_of("mha", /*class_token=*/false), {image()})[0];
  EXPECT_EQ(seen.layers[0][0].tokens, 0);
  EXPECT_EQ(seen.layers[0][0].patches.size(), 9u);
}

TEST_F(SeenImagesTest, DamagedImagesAreNamed) {
  write_file(files_ / "cut.png", png_file(random_image(12, 12, 3)).substr(0, 200));
  const std::string path = (files_ / "cut.png").string();
  EXPECT_THAT(error_message([&] { look_at_images(model_of("mha"), {path}); }), HasSubstr("cut.png"));
}

TEST_F(SeenImagesTest, ThePageHasAPictureForEachHead) {
  HeadAnalysis analysis;
  EXPECT_EQ(image_looks_html(analysis), "");
  analysis.images = look_at_images(model_of("mhe_mul"), {image()});
  analysis.images[0].name = "<a>.png";
  const std::string page = image_looks_html(analysis);
  size_t pictures = 0;
  for (size_t at = page.find("<img"); at != std::string::npos; at = page.find("<img", at + 1)) ++pictures;
  EXPECT_EQ(pictures, 2u * 4u);
  EXPECT_THAT(page, HasSubstr("layer 2, head 4: most, "));
  EXPECT_THAT(page, HasSubstr("&lt;a&gt;.png"));
}

}  // namespace seen_images_test
}  // namespace
}  // namespace headshare
