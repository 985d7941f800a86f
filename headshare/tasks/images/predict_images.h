// A vision transformer tells the classes of images that have no labels.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "headshare/data/images/listed_images.h"
#include "headshare/models/checkpoint.h"
#include "headshare/tasks/images/image_options.h"
#include "headshare/train/task.h"

namespace headshare {

// An ImagePrediction is what a model says of one image, or why the image cannot be read.
struct ImagePrediction {
  std::string image;                       // its name
  std::vector<double> probabilities = {};  // of each class; their sum is 1
  std::string failure = {};                // a sentence that names the image; the rest is empty then

  // Returns the classes with the highest probabilities, at most `most`, the likeliest first.
  std::vector<int64_t> likeliest(int64_t most) const;
};

class ImagePredictor {
 public:
  // Moves the model to `device`. Throws Error where it has no head that tells classes.
  ImagePredictor(LoadedVision model, c10::Device device);

  // Lists images as files and folders; they become what the model reads, as its training images did.
  ListedImages list(const std::vector<std::string>& paths) const;

  // Calls `take` with each image in order. Throws Error where the model's logits are not finite.
  void predict(ListedImages images, const std::function<void(const ImagePrediction&)>& take,
               const Task::Progress& progress);

  // Returns the name of a class: its number where the model has no names.
  std::string label(int64_t index) const;
  int64_t classes() const { return model_->options().classes; }

 private:
  VisionTransformer model_;
  fs::path directory_;
};

}  // namespace headshare
