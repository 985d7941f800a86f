// headshare predict MODEL IMAGES labels images with a vision transformer.
#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>
#include <vector>

#include "headshare/base/files/file.h"

namespace headshare {

struct ImagesToPredict {
  fs::path model;                   // a checkpoint or run directory
  std::vector<std::string> images;  // files and folders
  std::optional<int64_t> top = {};  // classes to show of each image: 1, as JSON all
  bool json = false;
};

struct LabelledImages {
  std::string text;       // as it is written: a table, or JSON lines
  size_t count = 0;       // images that have a label,
  size_t unreadable = 0;  // and others, each named in a notice
};

// Labels the images, and shows how far it is. Throws Error for a model without classes and for paths without images,
// Interrupted when the user asks.
LabelledImages predict_images(const ImagesToPredict& asked, c10::Device device);

}  // namespace headshare
