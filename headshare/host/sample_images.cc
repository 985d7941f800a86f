#include "headshare/host/sample_images.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/data/images/image_batcher.h"
#include "headshare/models/image_tensors.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {

Tensor read_sample(const SampleImages& images, const VisionOptions& model) {
  if (images.directory.empty()) return {};
  const int64_t T = image_tokens(model);
  HS_CHECK(images.tokens >= T, "an image is ", T, " tokens, and the sample may have ", images.tokens,
           "; raise --sample-tokens");
  const ImageData data = open_images({.images = images.directory}, model.image_size, model.channels, images.progress);
  const int64_t there = data.train.size(), count = std::min(there, images.tokens / T);
  if (count * T < model.attention.d_model) {
    notice(join_text("the sample has ", plural(static_cast<size_t>(count * T), "token"), " for a model width of ",
                     model.attention.d_model, ": layers are fitted to little more than those; take more images"));
  }
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < count; ++i) chosen.push_back(i * there / count);
  return image_tensors(plain_batch(data.train, chosen, scale_of(model)), model, at::kCPU).pixels;
}

}  // namespace headshare
