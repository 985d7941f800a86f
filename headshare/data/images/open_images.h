// These functions find the images of a directory, whatever format they have, and divide them into parts.
#pragma once

#include <string>

#include "headshare/base/options/field.h"
#include "headshare/data/images/image_folder.h"
#include "headshare/data/images/image_set.h"

namespace headshare {

struct ImageDataOptions {
  // A directory with one of
  //   - pairs of IDX files, as MNIST has them: *images*idx3*, *labels*idx1*
  //   - files of CIFAR-10's binary version: *.bin
  //   - a folder of PNG and JPEG files for each class; or train, validation (or val, valid, dev) and test with such
  //     folders
  // IDX and CIFAR files may end in .gz; those whose names hold "test" or "t10k" are the test part, those whose names
  // begin with val or dev the validation part, the others training images.
  std::string images;
  double image_validation_fraction = 0.1;  // of the training images, where the data has no validation part
  double unreadable_fraction = 0.01;       // ImageFolderOptions
};

Fields fields(ImageDataOptions& options);

// These tell the format of a file that holds many images by its name.
bool is_idx_images(const std::string& name);  // "train-images-idx3-ubyte"
bool is_idx_labels(const std::string& name);  // "train-labels-idx1-ubyte"
bool is_cifar10(const std::string& name);     // "data_batch_1.bin"

// This is what the headers of the files say of the images.
struct ImageShape {
  int64_t size = 0;  // pixels of the shorter side; 0: every image has its own
  int64_t channels = 0;
  int64_t classes = 0;
};

// Looks at the directory without reading pixels. Throws Error where it holds no images.
ImageShape image_shape(const ImageDataOptions& options);

// Reads all parts with images of size x size pixels. Throws Error for what the readers refuse, and for a class without
// a training image, which it names.
ImageData open_images(const ImageDataOptions& options, int64_t size, int64_t channels,
                      const ImageProgress& progress = {});

}  // namespace headshare
