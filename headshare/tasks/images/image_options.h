// Models that tell the classes of images are made of these options, and learn by them.
#pragma once

#include <string>
#include <vector>

#include "headshare/data/images/augmentation.h"
#include "headshare/data/images/open_images.h"
#include "headshare/models/vision.h"
#include "headshare/tasks/task_options.h"

namespace headshare {

// Evaluations outside of a run score one part of the data; kAuto is the test part where there is one, else validation.
enum class ImagesToScore { kAuto, kTrain, kValidation, kTest };

struct ImageTaskOptions {
  ImageDataOptions data = {};
  VisionParts model = {};
  AugmentationOptions augmentation = {};
  double class_smoothing = 0;                  // share of the target's probability that goes to all classes alike
  ImagesToScore score = ImagesToScore::kAuto;  // of `evaluate` alone
};

// Lists what a run is made of.
Fields fields(ImageTaskOptions& options);

// Returns the option of ImageTaskOptions::class_smoothing.
Field class_smoothing_field(double* smoothing);

// Lists what `evaluate` asks for.
Fields scoring_fields_of_images(ImageTaskOptions& options);

// Sets what --task image begins with: sizes of images, patches and channels that fit `data`, where its directory is
// there, and a small model. Colour images are mirrored.
void set_image_defaults(const ImageDataOptions& data, TaskOptions* options);

// Returns the options of a model of these classes, resolved.
VisionOptions image_model(const TaskOptions& options, const std::vector<std::string>& classes,
                          const PixelScale& scale = {});

// Returns the model as far as the directory tells without reading an image: its classes have no names.
VisionOptions likely_image_model(const TaskOptions& options);

}  // namespace headshare
