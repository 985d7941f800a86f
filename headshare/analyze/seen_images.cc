#include "headshare/analyze/seen_images.h"

#include <ATen/ATen.h>

#include "headshare/analyze/similarity.h"
#include "headshare/base/error.h"
#include "headshare/base/strings/base64.h"
#include "headshare/data/images/encode_png.h"
#include "headshare/data/images/image_batcher.h"
#include "headshare/data/images/listed_images.h"
#include "headshare/models/image_tensors.h"

namespace headshare {
namespace {

// Returns where each head looks, of weights [H, T, T].
std::vector<HeadLook> looks_of(const Tensor& weights, const VisionOptions& model) {
  const int64_t leading = leading_tokens(model);
  const Tensor seen = model.class_token ? weights.select(1, 0) : weights.mean(1);  // [H, T]
  std::vector<HeadLook> looks;
  for (int64_t head = 0; head < seen.size(0); ++head) {
    const Tensor row = seen[head].to(at::kCPU, at::kDouble).contiguous();
    const auto* begin = row.const_data_ptr<double>();
    looks.push_back(
        {.patches = {begin + leading, begin + row.numel()}, .tokens = row.slice(0, 0, leading).sum().item<double>()});
  }
  return looks;
}

// Takes the observers of attention away again, whatever happens.
class Watching {
 public:
  explicit Watching(const VisionTransformer& model) : model_(model) {}
  ~Watching() {
    for (size_t i = 0; i < model_->layers(); ++i) model_->attention(i)->observe(nullptr);
  }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

  // Returns the looks of each layer at pixels [1, C, S, S].
  std::vector<std::vector<HeadLook>> looks(const Tensor& pixels) const {
    std::vector<std::vector<HeadLook>> layers;
    for (size_t i = 0; i < model_->layers(); ++i) {
      Attention attention = model_->attention(i);
      attention->observe([&layers, attention, this](const Tensor& x, const HeadMask& mask, const Tensor&) {
        layers.push_back(looks_of(attention_weights(attention, x, mask)[0], model_->options()));
      });
    }
    model_->hidden(pixels);
    return layers;
  }

 private:
  const VisionTransformer& model_;
};

}  // namespace

std::vector<LookedAtImage> look_at_images(const VisionTransformer& model, const std::vector<std::string>& paths) {
  const at::NoGradGuard no_grad;
  const VisionOptions& options = model->options();
  ListedImages images(paths, options.image_size, options.channels);
  HS_CHECK(images.count() <= kMostLookedAt, "--images names ", images.count(), " images, and a page shows at most ",
           kMostLookedAt, "; name fewer");
  std::vector<LookedAtImage> seen;
  const Watching watching(model);
  while (!images.ended()) {
    const ReadImages read = images.next(kMostLookedAt);
    HS_CHECK(read.failures.empty(), read.failures.front());
    for (int64_t index = 0; index < read.set.size(); ++index) {
      const std::span<const uint8_t> pixels = read.set.image(index);
      const Image image{.height = read.set.height,
                        .width = read.set.width,
                        .channels = read.set.channels,
                        .pixels = {pixels.begin(), pixels.end()}};
      const int64_t side = options.image_size / options.patch_size;
      seen.push_back(
          {.name = read.names[static_cast<size_t>(index)],
           .picture = to_base64(encode_png(image)),
           .rows = side,
           .columns = side,
           .layers = watching.looks(
               image_tensors(plain_batch(read.set, {&index, 1}, scale_of(options)), options, model->device()).pixels)});
    }
  }
  return seen;
}

}  // namespace headshare
