// Augmentation shows a model each training image in another form every time.
#pragma once

#include "headshare/base/options/field.h"
#include "headshare/base/rng.h"
#include "headshare/data/images/image.h"

namespace headshare {

struct AugmentationOptions {
  int64_t crop_padding = 0;             // black pixels around an image, of which a square of its size is cut
  bool flip = false;                    // half of the images are mirrored
  int64_t rand_augment = 0;             // operations of rand_augment.h on each image
  double rand_augment_magnitude = 0.3;  // their strength, of 1
  double mixup = 0;                     // Beta(mixup, mixup) gives the share of the first of two images; 0: none
};

Fields fields(AugmentationOptions& options);

// Changes the image: mirrors it, cuts it out of its frame, applies operations, in this order. The size stays. What
// happens depends on the options and the random numbers alone.
void augment(const AugmentationOptions& options, Philox* random, Image* image);

// Draws from Beta(alpha, alpha): the share that an image keeps when it is mixed with another (Zhang et al., 2018). A
// share x and a share 1 - x are equally likely; this returns the larger.
double mixing_share(double alpha, Philox* random);

}  // namespace headshare
