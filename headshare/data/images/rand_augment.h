// RandAugment (Cubuk et al., 2020) applies operations to an image that are drawn from a list.
#pragma once

#include <string>
#include <vector>

#include "headshare/base/rng.h"
#include "headshare/data/images/image.h"

namespace headshare {

// An operation changes an image with a strength in -1 .. 1; those without a direction use its size.
struct ImageOperation {
  std::string name;
  void (*apply)(double strength, Image* image);
};

// Lists the operations: none, shear (two), move (two), turn, brightness, contrast, colour, sharpness, posterise,
// solarise, auto-contrast, equalise. At strength 1 a shear moves the last row by 0.3 of the image, a move by 0.45; a
// turn is 30 degrees; brightness, contrast, colour and sharpness change by 0.9; posterise keeps 4 bits; solarise
// inverts all pixels. A pixel that comes from outside is black.
const std::vector<ImageOperation>& image_operations();

// Applies an operation that is drawn, with the strength `magnitude` in a direction that is drawn.
void random_operation(double magnitude, Philox* random, Image* image);

}  // namespace headshare
