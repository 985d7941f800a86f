// These functions change the size and the channels of an image.
#pragma once

#include <string>

#include "headshare/data/images/image.h"

namespace headshare {

// Resizes by triangles that widen where the image shrinks (bilinear with antialiasing): first rows, then columns,
// rounded to 8 bits after each, with weights of 22 bits. This is Pillow's resize(..., BILINEAR), which torchvision and
// timm take; docs/design/059 says where pixels differ from it by 1.
Image resized(const Image& image, int64_t height, int64_t width);

// Makes a square image: resizes so that the shorter side is `size`, and cuts the middle out, as torchvision's Resize
// and CenterCrop do. Returns an image of that size as it is.
Image squared(Image image, int64_t size);

// Returns the image with so many channels: grey becomes three equal colours. Throws Error led by `name` for a coloured
// image where one channel is wanted.
Image with_channels(Image image, int64_t channels, const std::string& name);

}  // namespace headshare
