// A vision transformer is fine-tuned on labelled images as one job of `finetune`.
#pragma once

#include <memory>

#include "headshare/models/checkpoint.h"
#include "headshare/tasks/finetune/job.h"
#include "headshare/tasks/images/image_options.h"

namespace headshare {

// ImageTuningOptions determine the data and what the model sees of them; the rest is in FineTuneOptions.
struct ImageTuningOptions {
  ImageDataOptions data = {};
  std::optional<int64_t> image_size = {};  // default the model's
  AugmentationOptions augmentation = {};
  double class_smoothing = 0;

  bool given() const { return !data.images.empty(); }
};

Fields fields(ImageTuningOptions& options);

// Reads the images. The job's models begin with the weights of `trained`; their pixels are scaled as its were. Where
// the classes are others than the model's, heads are new, drawn from the seed; where the size of images is another,
// learned positions are interpolated (interpolated_positions). The goal is the accuracy. Throws Error for what
// open_images() refuses, for a size that patches do not fill, and for options of `tuning` that are about texts.
std::unique_ptr<FineTuneJob> open_image_job(const ImageTuningOptions& options, const FineTuneOptions& tuning,
                                            const LoadedVision& trained, const ImageProgress& progress = {});

}  // namespace headshare
