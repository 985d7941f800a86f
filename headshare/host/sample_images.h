// Programs that look into a vision transformer's layers read images like those that it reads.
#pragma once

#include <string>

#include "headshare/data/images/open_images.h"
#include "headshare/models/vision.h"

namespace headshare {

// SampleImages stand for what a model reads.
struct SampleImages {
  std::string directory;        // ImageDataOptions::images
  int64_t tokens = 0;           // the most tokens to read: those of an image are its patches and the tokens before them
  ImageProgress progress = {};  // hears how far the reading is
};

// Reads training images of the directory at even distances, so that all classes are among them in whatever order they
// lie: pixels float32 [N, C, S, S], normalised as the model wants them; undefined without a directory. Throws Error
// where not one image fits into the tokens.
Tensor read_sample(const SampleImages& images, const VisionOptions& model);

}  // namespace headshare
