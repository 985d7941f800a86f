#include "headshare/data/images/image_batcher.h"

#include <algorithm>
#include <numeric>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/shuffle.h"

namespace headshare {
namespace {

// Writes an image as [C, S, S], scaled.
void put_scaled(const Image& image, const PixelScale& scale, float* out) {
  const auto channels = static_cast<size_t>(image.channels);
  const size_t plane = image.pixels.size() / channels;
  for (size_t channel = 0; channel < channels; ++channel) {
    const auto factor = static_cast<float>(1 / (255 * scale.deviation[channel]));
    const auto offset = static_cast<float>(-scale.mean[channel] / scale.deviation[channel]);
    for (size_t at = 0; at < plane; ++at) {
      *out++ = static_cast<float>(image.pixels[at * channels + channel]) * factor + offset;
    }
  }
}

Image image_of(const ImageSet& set, int64_t index) {
  const std::span<const uint8_t> pixels = set.image(index);
  return {.height = set.height, .width = set.width, .channels = set.channels, .pixels = {pixels.begin(), pixels.end()}};
}

// Mixes each image with its counterpart from the other end of the batch, as timm does.
void mix(double share, ImageBatch* batch) {
  const size_t rows = batch->labels.size();
  const size_t bytes = batch->pixels.size() / rows;
  const auto own = static_cast<float>(share);
  batch->share = share;
  batch->mixed_labels.assign(batch->labels.rbegin(), batch->labels.rend());
  for (size_t row = 0; 2 * row < rows; ++row) {
    float* first = batch->pixels.data() + row * bytes;
    float* last = batch->pixels.data() + (rows - 1 - row) * bytes;
    for (size_t at = 0; at < bytes; ++at) {
      const float a = first[at], b = last[at];
      first[at] = own * a + (1 - own) * b;
      last[at] = own * b + (1 - own) * a;
    }
  }
}

}  // namespace

ImageBatch plain_batch(const ImageSet& set, std::span<const int64_t> chosen, const PixelScale& scale) {
  const size_t numbers = image_bytes(set.height, set.width, set.channels);
  ImageBatch batch{.pixels = std::vector<float>(numbers * chosen.size())};
  for (size_t row = 0; row < chosen.size(); ++row) {
    put_scaled(image_of(set, chosen[row]), scale, batch.pixels.data() + row * numbers);
    batch.labels.push_back(set.labels[static_cast<size_t>(chosen[row])]);
  }
  return batch;
}

nlohmann::json to_json(const ImageBatchState& state) {
  return {{"epoch", state.epoch}, {"batch", state.batch}, {"fingerprint", state.fingerprint}};
}

ImageBatchState image_batch_state_from_json(const nlohmann::json& json, const std::string& where) {
  const std::optional<int64_t> epoch = json_count(json, "epoch");
  const std::optional<int64_t> batch = json_count(json, "batch");
  HS_CHECK(epoch && batch && json.contains("fingerprint") && json["fingerprint"].is_string(), where,
           ": a position in the images {epoch, batch, fingerprint} was expected, not ", brief_json(json));
  return {.epoch = *epoch, .batch = *batch, .fingerprint = json["fingerprint"].get<std::string>()};
}

ImageBatcher::ImageBatcher(std::shared_ptr<const ImageSet> set, ImageBatcherOptions options)
    : set_(std::move(set)),
      options_(std::move(options)),
      order_key_(stream_key(options_.seed, "image-batches")),
      image_key_(stream_key(options_.seed, "image-augmentation")),
      mix_key_(stream_key(options_.seed, "image-mixing")) {
  HS_CHECK(set_ != nullptr && !set_->empty(), "there are no images to make batches of");
  HS_CHECK(options_.batch_size > 0, "--batch-size ", options_.batch_size, " is not positive");
  state_.fingerprint = set_->fingerprint();
}

int64_t ImageBatcher::batch_images() const { return std::min(options_.batch_size, set_->size()); }

const std::vector<int64_t>& ImageBatcher::order_of(int64_t epoch) {
  if (order_epoch_ == epoch) return order_;
  order_epoch_ = epoch;
  order_.resize(static_cast<size_t>(set_->size()));
  std::iota(order_.begin(), order_.end(), 0);
  Philox random(stream_key(order_key_, static_cast<uint64_t>(epoch)));
  shuffle(&order_, &random);
  return order_;
}

void ImageBatcher::advance(Place* place) const {
  if (++place->batch < batches_in_epoch()) return;
  place->batch = 0;
  ++place->epoch;
}

ImageBatch ImageBatcher::make(const Place& place, const std::vector<int64_t>& chosen) const {
  const uint64_t key = stream_key(image_key_, static_cast<uint64_t>(place.epoch));
  const size_t numbers = image_bytes(set_->height, set_->width, set_->channels);
  ImageBatch batch{.pixels = std::vector<float>(numbers * chosen.size())};
  for (size_t row = 0; row < chosen.size(); ++row) {
    Image image = image_of(*set_, chosen[row]);
    Philox random(stream_key(key, static_cast<uint64_t>(chosen[row])));
    augment(options_.augmentation, &random, &image);
    put_scaled(image, options_.scale, batch.pixels.data() + row * numbers);
    batch.labels.push_back(set_->labels[static_cast<size_t>(chosen[row])]);
  }
  if (options_.augmentation.mixup > 0) {
    Philox random(
        stream_key(stream_key(mix_key_, static_cast<uint64_t>(place.epoch)), static_cast<uint64_t>(place.batch)));
    mix(mixing_share(options_.augmentation.mixup, &random), &batch);
  }
  return batch;
}

void ImageBatcher::start_next() {
  const std::vector<int64_t>& order = order_of(coming_place_.epoch);
  const auto begin = order.begin() + coming_place_.batch * batch_images();
  std::vector<int64_t> chosen(begin, begin + batch_images());
  const auto how = options_.ahead == 0 ? std::launch::deferred : std::launch::async;
  coming_.push_back(
      std::async(how, [this, place = coming_place_, images = std::move(chosen)] { return make(place, images); }));
  advance(&coming_place_);
}

ImageBatch ImageBatcher::next() {
  while (static_cast<int64_t>(coming_.size()) <= options_.ahead) start_next();
  ImageBatch batch = coming_.front().get();
  coming_.pop_front();
  Place place{.epoch = state_.epoch, .batch = state_.batch};
  advance(&place);
  state_.epoch = place.epoch;
  state_.batch = place.batch;
  return batch;
}

void ImageBatcher::restore(const ImageBatchState& state) {
  HS_CHECK(state.fingerprint == state_.fingerprint, "cannot go on with other images: the run was at epoch ",
           state.epoch, ", batch ", state.batch, " of images ", state.fingerprint, ", but these are ",
           state_.fingerprint, "; give the same --images, --image-size and --channels, or start a new run");
  HS_CHECK(state.epoch >= 0 && state.batch >= 0 && state.batch < batches_in_epoch(), "cannot go on at batch ",
           state.batch, " of epoch ", state.epoch, ": it has ", batches_in_epoch(),
           "; give the same --batch-size, or start a new run");
  coming_.clear();
  state_ = state;
  coming_place_ = {.epoch = state.epoch, .batch = state.batch};
}

double ImageBatcher::epochs() const {
  return static_cast<double>(state_.epoch) +
         static_cast<double>(state_.batch) / static_cast<double>(batches_in_epoch());
}

}  // namespace headshare
