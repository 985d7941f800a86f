#include "headshare/tasks/images/image_options.h"

#include <algorithm>

#include "headshare/base/files/file.h"

namespace headshare {
namespace {

constexpr int64_t kFolderSize = 64;      // of images that have no size in common
constexpr int64_t kUnknownClasses = 10;  // where no directory is named
constexpr int64_t kMostPatchesOfSide = 8;
// BERT's 0.02 belongs to widths near 768; from it a width of 64 learns MNIST many times slower (docs/design/059).
constexpr double kSmallModelDeviation = 0.08;
constexpr int64_t kVitPatch = 16, kVitLeastSize = 192;  // from this size on patches are ViT's

const EnumNames<ImagesToScore>& part_to_score_names() {
  static const EnumNames<ImagesToScore> names = {{ImagesToScore::kAuto, "auto"},
                                                 {ImagesToScore::kTrain, "train"},
                                                 {ImagesToScore::kValidation, "validation"},
                                                 {ImagesToScore::kTest, "test"}};
  return names;
}

// Returns the smallest patch with which an image has at most 8 x 8 of them.
int64_t patch_of(int64_t size) {
  if (size >= kVitLeastSize && size % kVitPatch == 0) return kVitPatch;
  int64_t patch = 1;
  while (size % patch != 0 || size / patch > kMostPatchesOfSide) ++patch;
  return patch;
}

}  // namespace

Field class_smoothing_field(double* smoothing) {
  return field("class-smoothing", smoothing,
               "label smoothing: share of a target's probability that goes to all classes alike",
               {.min = 0, .max = 0.99});
}

Fields fields(ImageTaskOptions& o) {
  Fields list = fields(o.data);
  append(&list, fields(o.model));
  append(&list, fields(o.augmentation));
  list.push_back(class_smoothing_field(&o.class_smoothing));
  return list;
}

Fields scoring_fields_of_images(ImageTaskOptions& o) {
  Fields list = fields(o.data);
  list.push_back(field("image-part", &o.score,
                       "what to score: a part of --images; auto: the test part where there is one, else validation",
                       part_to_score_names()));
  return list;
}

void set_image_defaults(const ImageDataOptions& data, TaskOptions* options) {
  ImageTaskOptions& own = options->own<ImageTaskOptions>();
  ImageShape shape;
  if (!data.images.empty() && fs::is_directory(data.images)) shape = image_shape(data);
  own.model.image_size = shape.size > 0 ? shape.size : kFolderSize;
  own.model.patch_size = patch_of(own.model.image_size);
  own.model.channels = shape.channels > 0 ? shape.channels : 3;
  own.augmentation.crop_padding = std::max<int64_t>(own.model.image_size / 10, 1);
  own.augmentation.flip = own.model.channels == 3;
  options->model = VisionOptions();
  options->model.layers = 4;
  options->model.attention.d_model = 64;
  options->model.attention.heads = 4;
  options->model.init_deviation = kSmallModelDeviation;
  options->batch_size = 128;
}

VisionOptions image_model(const TaskOptions& options, const std::vector<std::string>& classes,
                          const PixelScale& scale) {
  VisionOptions model;
  static_cast<TransformerOptions&>(model) = options.model;
  static_cast<VisionParts&>(model) = options.own<ImageTaskOptions>().model;
  model.classes = static_cast<int64_t>(classes.size());
  model.images = {.labels = classes, .mean = scale.mean, .deviation = scale.deviation};
  return resolve(model);
}

VisionOptions likely_image_model(const TaskOptions& options) {
  const ImageDataOptions& data = options.own<ImageTaskOptions>().data;
  const bool named = !data.images.empty() && fs::is_directory(data.images);
  VisionOptions model = image_model(options, {});
  model.classes = named ? image_shape(data).classes : kUnknownClasses;
  return resolve(model);
}

}  // namespace headshare
