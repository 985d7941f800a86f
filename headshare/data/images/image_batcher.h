// A batcher makes batches of training images. Legend: B images, C channels, S pixels a side.
#pragma once

#include <deque>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headshare/data/images/augmentation.h"
#include "headshare/data/images/image_set.h"

namespace headshare {

struct ImageBatch {
  std::vector<float> pixels = {};    // [B, C, S, S], scaled
  std::vector<int64_t> labels = {};  // [B]
  // With mixup, each image is share * an image of `labels` + (1 - share) * one of `mixed_labels`; empty without.
  std::vector<int64_t> mixed_labels = {};
  double share = 1;
};

// Returns the images `chosen` as they are, scaled.
ImageBatch plain_batch(const ImageSet& set, std::span<const int64_t> chosen, const PixelScale& scale);

struct ImageBatcherOptions {
  int64_t batch_size = 128;
  uint64_t seed = 0;
  PixelScale scale = {};
  AugmentationOptions augmentation = {};
  int64_t ahead = 2;  // batches that are made in threads of their own while others are learned from; 0: none
};

// This is where a batcher stands. The batches that follow depend on this, the options and the images alone.
struct ImageBatchState {
  int64_t epoch = 0;        // from 0
  int64_t batch = 0;        // the next one of this epoch
  std::string fingerprint;  // of the images
};

nlohmann::json to_json(const ImageBatchState& state);
ImageBatchState image_batch_state_from_json(const nlohmann::json& json, const std::string& where);

// An ImageBatcher gives each image at most once an epoch, in an order of the epoch; the images that fill no batch are
// left out, others every time. Where there are fewer than a batch, all of them are one. Orders come from the stream
// (seed, "image-batches") and the epoch. What augmentation does to an image follows from (seed, epoch, image), and how
// a batch is mixed from (seed, epoch, batch): the number of threads changes nothing.
class ImageBatcher {
 public:
  // Throws Error where there are no images.
  ImageBatcher(std::shared_ptr<const ImageSet> set, ImageBatcherOptions options);
  ImageBatcher(const ImageBatcher&) = delete;
  ImageBatcher& operator=(const ImageBatcher&) = delete;

  ImageBatch next();

  // Returns the number of images that each batch has.
  int64_t batch_images() const;
  int64_t batches_in_epoch() const { return set_->size() / batch_images(); }

  const ImageBatchState& state() const { return state_; }

  // Goes on from a state of a batcher with equal options. Throws Error for a state of other images, and for a batch
  // that an epoch does not have.
  void restore(const ImageBatchState& state);

  // Tells how often the images have been gone through.
  double epochs() const;

 private:
  struct Place {
    int64_t epoch = 0, batch = 0;
  };
  void advance(Place* place) const;
  const std::vector<int64_t>& order_of(int64_t epoch);
  ImageBatch make(const Place& place, const std::vector<int64_t>& chosen) const;
  void start_next();

  std::shared_ptr<const ImageSet> set_;
  ImageBatcherOptions options_;
  uint64_t order_key_, image_key_, mix_key_;
  ImageBatchState state_;
  Place coming_place_;  // of the batch that is begun next
  int64_t order_epoch_ = -1;
  std::vector<int64_t> order_;                  // of order_epoch_
  std::deque<std::future<ImageBatch>> coming_;  // the last member: its threads use the others
};

}  // namespace headshare
